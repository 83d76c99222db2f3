"""Archives of runs that a team shares: a folder, or an object store supported by fsspec."""
