"""Archives of runs that a team shares: a folder, a container of Swift, or a store of fsspec."""
