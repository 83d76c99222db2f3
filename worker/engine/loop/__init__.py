"""The event loop of an engine of coroutines."""
