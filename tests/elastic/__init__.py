"""A staircase of load whose workers an autoscaler starts and ends by their metrics."""
