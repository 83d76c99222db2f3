"""Findings on a load for its report: causes that bound it, own lateness, and its course."""
