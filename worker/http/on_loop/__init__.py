"""The HTTP client for virtual users that share an event loop."""
