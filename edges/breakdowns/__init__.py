"""Results in parts: by zone of the workers, and by server that responded."""
