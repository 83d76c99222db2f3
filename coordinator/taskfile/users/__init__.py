"""Keys of a workload that describe its virtual users."""
