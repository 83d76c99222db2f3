"""The life of a run: plan, preparation, load, failover, end. The only package that orchestrates."""
