"""Overloads a service on purpose, and says whether it comes back at the load that it held before."""
