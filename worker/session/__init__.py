"""One run in one worker process: takes batches, ships result blocks."""
