"""Access to an OpenStack cloud for coordinator and workers: accounts, requests, names."""
