"""Checks before a run whether it could work: Redis, rights, keys, workers, host."""
