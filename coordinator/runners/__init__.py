"""The built-in runners, one per file: pure functions from elapsed time to load."""
