"""A cloud's API as its users see it, for coordinator and workers: accounts, requests, names."""
