"""The parts of `HttpFlow`: sequences of HTTP requests that a task describes, without code."""
