"""Compares runs: improvements and regressions, with their certainty; trends over runs."""
