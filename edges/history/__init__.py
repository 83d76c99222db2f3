"""What outlives a run: comparisons, trends and gates, archives, plans, and exports to systems."""
