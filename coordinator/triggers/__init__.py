"""Triggers, one a file: when hooks fire."""
