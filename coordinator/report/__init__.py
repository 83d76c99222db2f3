"""Reports of runs: the report object, its JSON, text and page, and exports."""
