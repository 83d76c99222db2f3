"""Number of workers that a task needs: its load, the cost of an iteration, and the arithmetic."""
