"""The task: files and ad hoc requests, data, deployment records, checks before a run."""
