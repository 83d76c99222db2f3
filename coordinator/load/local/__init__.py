"""Local mode: a private Redis and private workers for one run, removed with it."""
