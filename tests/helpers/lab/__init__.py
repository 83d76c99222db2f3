"""Helpers of the tests that run real OpenStack services."""
