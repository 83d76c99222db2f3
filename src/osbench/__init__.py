"""osbench: a distributed load generator for OpenStack-style services."""

__version__ = "0.1.0"
