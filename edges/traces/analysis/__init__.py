"""Analysis of why slow traces are slow: a table of features, bands of slow traces, comparisons."""
