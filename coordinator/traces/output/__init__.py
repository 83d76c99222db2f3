"""Output of traces as text, as rows and in the formats of other tools."""
