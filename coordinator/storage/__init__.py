"""The run directory: journal, result blocks, manifest, progress, failure."""
