"""Traces of iterations: sampling, spans, and the thread that writes them to the store."""
