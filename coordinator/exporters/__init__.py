"""Exporters, one a file."""
