"""The traces of a run: planned, read, kept, found again."""
