"""Statements on a workload: the terminal shows all, the page only facts that it shows nowhere
else.
"""
