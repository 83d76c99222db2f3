"""Staircases: the knee of a load, its first full resource, and the law of its throughput."""
