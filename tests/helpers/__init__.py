"""Helpers of the tests: servers, clouds and data that tests start, drive or compare with."""
