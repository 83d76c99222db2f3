"""JSON schemas of task files, the conversion of values by them, and messages for their errors."""
