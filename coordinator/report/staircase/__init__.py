"""Staircases: throughput and latency by level of load, from stages of a load or several runs."""
