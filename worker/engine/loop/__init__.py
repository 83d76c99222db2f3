"""The event loop of an engine of coroutines: its thread, precise timer and blocking calls."""
