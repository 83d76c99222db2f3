"""Other projects' own tests, run over our session: `make conformance`."""
