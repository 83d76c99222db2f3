"""Clients for requests that our own one does not make: libcurl and requests."""
