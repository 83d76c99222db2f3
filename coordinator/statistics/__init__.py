"""Percentiles and paths of atomic actions: pure functions."""
