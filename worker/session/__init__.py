"""A worker process's part in a run: takes batches, prepares workloads, ships result blocks."""
