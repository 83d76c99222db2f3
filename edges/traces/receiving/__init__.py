"""Receives spans of services by OTLP during a run, in a separate process."""
