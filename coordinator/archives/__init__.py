"""Archives of runs that a team shares: a folder, or a store of objects that fsspec knows."""
