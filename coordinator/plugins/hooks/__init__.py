"""Hooks: the built-in actions, one per file, and the executor that runs them during the load."""
