"""Exporters for other programs that read files: tables of times, and test suites of CI."""
