"""Dispatch: decides which iterations go to which worker, and when. Does no I/O itself."""
