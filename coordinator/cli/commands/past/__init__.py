"""Commands on runs that are over, and on results of Rally."""
