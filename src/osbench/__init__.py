"""osbench: a distributed load generator for OpenStack-style services."""

__version__ = "0.2.0"
