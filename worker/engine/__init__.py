"""The engine of a worker process: runs iterations on virtual users and records their results."""
