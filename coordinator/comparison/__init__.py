"""Comparison of runs: what became better or worse, and how sure that is; trends over runs."""
