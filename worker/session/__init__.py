"""One run in one worker process: batches in, result blocks out."""
