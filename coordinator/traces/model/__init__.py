"""The data model of traces: spans, trees, clock offsets, critical paths, keys."""
