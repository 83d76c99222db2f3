"""Counters of the system under test, such as CPU: read from Prometheus after the load, and
stored.
"""
