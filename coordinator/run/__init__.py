"""The life of a run: plan, prepare, load, failover, finish; the only orchestrator."""
