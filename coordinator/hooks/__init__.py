"""Hooks: actions, one a file, what triggers them, and what runs them beside the load."""
