"""Statements on a workload: the terminal shows all of them, the page those it lacks elsewhere."""
