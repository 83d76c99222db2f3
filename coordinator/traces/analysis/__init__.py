"""Why slow traces are slow: features, bands, rankings, comparisons."""
