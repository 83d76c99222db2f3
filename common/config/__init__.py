"""The configuration of osbench: its options, how its files are read, and where logs are written."""
