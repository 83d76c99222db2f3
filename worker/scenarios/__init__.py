"""The scenarios that ship with osbench."""
