"""Receives spans of services by OTLP while a run goes on, in a separate process."""
