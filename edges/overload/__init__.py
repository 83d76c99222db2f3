"""Overloads a service, and finds whether it comes back at the load that it held before."""
