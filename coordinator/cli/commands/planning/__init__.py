"""The command that says before a run what it needs."""
