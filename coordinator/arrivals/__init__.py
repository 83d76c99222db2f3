"""Recorded arrivals: the file that `replay` reads, and the argument each gives its iteration."""
