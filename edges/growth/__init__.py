"""The law of growth: how requests get slower and do more work as their service fills."""
