"""The side that runs iterations: Celery worker, engine, profiling, scenarios."""
