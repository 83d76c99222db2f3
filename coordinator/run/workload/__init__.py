"""One workload of a run under load: its steps, its virtual users, its end, and its outcome."""
