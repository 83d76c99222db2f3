"""SLA criteria on HTTP requests: first bytes, events of streams, and bytes per second."""
