"""Hosts in network namespaces, and a network between them that delays, loses and cuts."""
