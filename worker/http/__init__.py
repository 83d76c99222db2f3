"""HTTP clients for scenarios."""
