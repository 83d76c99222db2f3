"""Receives spans of services by OTLP while a run goes on, in a process of its own."""
