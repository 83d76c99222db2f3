"""Bounds of the arrival rates and counts that runners accept.

This module imports nothing, as options of commands use it.
"""

#: Limits on rates, arrivals per second: beyond them due times coincide or overflow.
SLOWEST, FASTEST = 1e-9, 1e9
#: Most of anything that is counted: a million each second for 30 years; floats hold it exactly.
MOST_COUNT = 10**15
#: Limit on the arrivals of one workload.
MOST_PLANNED = 10**10
