"""Small values that all sides share: intervals, histograms, outcomes, marks of trace ids."""
