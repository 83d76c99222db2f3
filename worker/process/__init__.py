"""Worker processes of a host: supervisor, Celery consumer, heartbeats, orderly shutdown."""
