"""Statements on a workload: all for the terminal; the page shows only some of them."""
