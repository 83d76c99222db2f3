"""Keys of a workload that say what its virtual users are like."""
