"""Plug-ins of the coordinator, a module each, and the code that runs them."""
