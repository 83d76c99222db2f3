"""The life of a run: plan, preparation, load, failover, end. Orchestrates the others."""
