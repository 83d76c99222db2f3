"""Secrets: how they are recognised by name and form, and how they are masked."""
