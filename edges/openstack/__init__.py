"""An OpenStack cloud under test: its scenarios, contexts, users, records and checks."""
