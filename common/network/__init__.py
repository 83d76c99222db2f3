"""The network as clients and listeners meet it: proxies, addresses, causes of failures."""
