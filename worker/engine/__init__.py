"""The engine: virtual users that run iterations, and what an iteration records."""
