"""What a reader has to know of a load before its numbers: bounds, lateness, the course it took."""
