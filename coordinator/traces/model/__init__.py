"""Spans, traces and trees: what every other part of traces works on."""
