"""Bounds of the arrival rates that runners accept, per second.

This module imports nothing, as options of commands use it.
"""

#: Limits on rates, arrivals per second: beyond them due times coincide or overflow.
SLOWEST, FASTEST = 1e-9, 1e9
#: Limit on the arrivals of one workload.
MOST_PLANNED = 10**10
