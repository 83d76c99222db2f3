"""Time, by the names of `time`.

- `monotonic`, `monotonic_ns`: the clock of this process. It never goes back, its zero is arbitrary.
- `time`, `time_ns`: the wall clock. It may be set at any time, so it is for people only.
- `sleep`: never ends early, may end late. Other threads run meanwhile.
- `process_time`, `process_time_ns`, `clock_gettime_ns` of `pthread_getcpuclockid`: CPU time that
  was used, which is a measurement and decides nothing.
- `gmtime`, `strftime`: the wall clock in words.
"""

from __future__ import annotations

from contextlib import suppress
from time import (
    clock_gettime_ns,
    gmtime,
    monotonic,
    monotonic_ns,
    process_time,
    process_time_ns,
    sleep,
    strftime,
    time,
    time_ns,
)

# not on every platform
with suppress(ImportError):
    from time import pthread_getcpuclockid

__all__ = [
    "clock_gettime_ns",
    "gmtime",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
    "pthread_getcpuclockid",
    "sleep",
    "strftime",
    "time",
    "time_ns",
]
