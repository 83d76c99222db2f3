"""Network code of clients and servers: proxies, addresses, limits, causes of errors."""
