"""Checks before a run whether it could work: Redis, rights, keys, workers, and this host."""
