"""The deployment record: its schema, its sources, and its readers on both sides."""
