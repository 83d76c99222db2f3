"""Traces of iterations: their collection, their span trees, and why some iterations were slow."""
