"""The report of a run as frozen classes: its JSON object, its parts, and their measurement."""
