"""Settings of a workload that describe its virtual users: schemas and checks."""
