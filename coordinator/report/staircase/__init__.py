"""Staircases: throughput and latency by level of load, from stages of one load or several runs."""
