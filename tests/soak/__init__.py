"""A long run whose processes and keys must not grow (`make soak`, docs/scaling.md)."""
