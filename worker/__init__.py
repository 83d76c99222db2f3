"""The workers, which run iterations: Celery consumer, engine, profiling, scenarios."""
