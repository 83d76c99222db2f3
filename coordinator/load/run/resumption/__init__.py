"""State that a coordinator saves on disk so that another one can resume the run."""
