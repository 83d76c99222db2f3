"""The deployment record: its schema, where it comes from, and how both sides read it."""
