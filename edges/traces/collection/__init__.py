"""The traces of a run: sample rate, collection at its end, selection of kept ones, lookup."""
