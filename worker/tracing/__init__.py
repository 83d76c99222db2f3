"""Traces of iterations: which are traced, their spans, and the thread that stores them."""
