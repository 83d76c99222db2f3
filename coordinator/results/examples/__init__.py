"""Iterations to look at: slow ones with a trace, failed ones, one of each type of error."""
