"""Worker processes: those that exist, those of a run, and the state of each."""
