"""Celery and Redis: what goes to workers and what comes from them."""
