"""The worker process: supervisor, Celery consumer, heartbeats, and an orderly end."""
