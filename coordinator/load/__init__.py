"""The load: the life of a run, workers, dispatch, and the servers of local mode."""
