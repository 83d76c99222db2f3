"""The worker process: supervisor, Celery consumer, heartbeats, orderly shutdown."""
