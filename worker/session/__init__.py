"""A run in a worker process: takes batches, ships result blocks."""
