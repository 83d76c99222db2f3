"""Findings that a reader needs before the numbers of a load: bounds, lateness, its course."""
