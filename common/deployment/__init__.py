"""The deployment record, which describes the system under test: its schema and its sources."""
