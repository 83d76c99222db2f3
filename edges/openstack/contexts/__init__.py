"""Contexts that make resources of iterations in a cloud, one per file."""
