"""Contexts, one a file, and what sets them up and removes them."""
