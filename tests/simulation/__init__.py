"""Hundreds of workers in a few processes, to load a coordinator and a Redis (docs/scaling.md).

All that reaches Redis is made by a worker's own code: heartbeats, memberships, blocks, outboxes.
Two parts stand in: engines make the rows of iterations in bulk and run no scenario, and a plain
BRPOP takes the place of Celery's consumer.
"""
