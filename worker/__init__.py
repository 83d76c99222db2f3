"""Worker side: processes that take batches of iterations, run them and send the results."""
