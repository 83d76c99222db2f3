"""Seals the result of a run with a signature, and verifies such certificates."""
