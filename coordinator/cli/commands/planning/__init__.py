"""Commands for before a run: how many workers it needs, and what would make it fail."""
