"""Data model of traces: spans, trees, clock offsets between hosts, critical paths, and keys of
spans.
"""
