"""Worker processes: the whole fleet, the workers of a run, and the state of each."""
