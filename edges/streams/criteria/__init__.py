"""SLA criteria on transfers: their first byte, and their bytes per second."""
