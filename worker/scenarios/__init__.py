"""The scenarios that ship with osbench: HTTP requests, OpenStack services, dummies for tests."""
