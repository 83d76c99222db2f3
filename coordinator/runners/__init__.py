"""Runners, one a file: pure functions from elapsed time to load."""
