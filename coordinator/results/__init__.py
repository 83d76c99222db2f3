"""The results: every iteration accounted for, statistics, and the run directory on disk."""
