"""Trials of a search for the capacity, and what came of each."""
