"""Says before a run whether it could work: servers, rights, keys, workers, this host."""
