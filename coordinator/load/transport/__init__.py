"""Celery and Redis: sends work and control records to workers, and receives their results."""
