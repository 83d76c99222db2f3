"""Bodies that stream: events of responses as they come, and criteria on requests and events."""
