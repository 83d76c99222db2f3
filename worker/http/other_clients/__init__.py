"""HTTP clients for requests that osbench's own client cannot make: libcurl and `requests`."""
