"""SLA criteria, one a file."""
