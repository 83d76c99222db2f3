"""The scenarios that ship with osbench: HTTP requests, flows of them, dummies for tests."""
