"""Bounds of arrival rates. Imports nothing: options of commands have them."""

#: Limits on rates, arrivals per second: beyond them due times coincide or overflow.
SLOWEST, FASTEST = 1e-9, 1e9
#: Limit on the arrivals of one workload.
MOST_PLANNED = 10**10
