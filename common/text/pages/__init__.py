"""Values that HTML pages and other texts hold, found in bounded time."""
