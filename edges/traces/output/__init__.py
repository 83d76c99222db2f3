"""Output of traces: text for terminals, rows for reports and JSON, formats of other tools."""
