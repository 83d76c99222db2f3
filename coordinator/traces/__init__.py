"""Traces of iterations: collection, trees, and the analysis of why some were slow."""
