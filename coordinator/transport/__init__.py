"""Celery and Redis: sends work to workers and receives their results."""
