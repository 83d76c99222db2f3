"""The built-in exporters, one per file."""
