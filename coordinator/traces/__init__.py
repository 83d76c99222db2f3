"""Traces of iterations: collected, made into trees, and asked why the slow ones were slow."""
