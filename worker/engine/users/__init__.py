"""The life of virtual users outside their iterations: beginning, think times and end."""
