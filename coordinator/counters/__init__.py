"""Counters of the system under test: read from Prometheus at the end of a run, and kept."""
