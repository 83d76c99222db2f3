"""Flows of HTTP requests that a task describes, without code."""
