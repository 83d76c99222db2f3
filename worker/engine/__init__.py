"""The engine: virtual users that run iterations, and the recording of results."""
