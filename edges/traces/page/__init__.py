"""The page of a run: why its slow iterations were slow, and counters of the system under test."""
