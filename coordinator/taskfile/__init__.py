"""Task files: rendered, parsed, checked."""
