"""How many workers a task needs: its load, what an iteration costs, and the arithmetic."""
