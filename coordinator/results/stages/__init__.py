"""Statistics of the stages of a load."""
