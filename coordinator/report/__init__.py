"""Reports of runs: the report object, its JSON, text and HTML page, and exports."""
