"""Throughput and latency by load, of the stages of a load or of several runs."""
