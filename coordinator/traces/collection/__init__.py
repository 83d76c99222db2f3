"""The traces of a run: sample rate, collection, retention, lookup."""
