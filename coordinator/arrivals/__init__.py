"""Recorded arrivals: their file, and what each brings to its iteration."""
