"""Files of a run directory: journal, result blocks, documents, log, digests and requests."""
