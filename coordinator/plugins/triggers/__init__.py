"""The built-in triggers, one per file: when hooks fire."""
