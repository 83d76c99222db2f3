"""Reports of finished runs: one JSON object, from which text is printed."""
