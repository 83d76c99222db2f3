"""Analysis of why slow traces are slow: features, bands, rankings, comparisons."""
