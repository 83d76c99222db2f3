"""The coordinator: plans runs, dispatches iterations to workers, accounts for them and reports."""
