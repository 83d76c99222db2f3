"""Displays of one run: its progress, its iterations, its errors, its logs."""
