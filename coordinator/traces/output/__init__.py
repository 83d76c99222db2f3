"""Traces as text, as rows and in the formats of other tools."""
