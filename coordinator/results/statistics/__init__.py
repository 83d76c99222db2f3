"""Statistics of load tests, without I/O: percentiles, intervals, tests, fits and windows."""
