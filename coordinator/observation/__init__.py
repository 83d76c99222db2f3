"""Watchers of a run, and parts of its page, that read counters and traces."""
