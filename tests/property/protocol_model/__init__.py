"""A model of accounting protocol 2: coordinators, workers, supervisors, and a Redis that may lie.

docs/adr/0017-accounting-protocol.md states the rules in words. Each module here holds one part, so
that a driver of the real part can take its place: `ledger_model`, `run_directory_model`,
`intake_model` and `outbox_model` know nothing of time, chance or Redis.
"""
