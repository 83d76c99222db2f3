"""Secrets: their names and forms, and how they are masked."""
