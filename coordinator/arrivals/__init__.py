"""Recorded arrivals: their file, and the arguments that each gives its iteration."""
