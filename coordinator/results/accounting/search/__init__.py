"""Trials of a search for the capacity, and their results."""
