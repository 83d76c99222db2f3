"""Redis time, computed from a host's monotonic clock.

Each host measures how far Redis `TIME` is ahead of its monotonic clock: the sample with the
shortest round trip bounds the error by half of that trip (Cristian 1989). Wall clocks, which may be
wrong or stepped, are not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from osbench.common.ports import clock as time
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.wire import Wire

#: How old a measurement becomes under load, and how long the next one may take, seconds.
_FRESH_S = 30.0
_WITHIN_S = 0.1
#: Two measurements of Redis time differ by more only if its clock was set, nanoseconds.
_SET_NS = 100_000_000


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """A measurement: how far Redis time is ahead of this host's monotonic clock, and its error."""

    #: Nanoseconds to add to `time.monotonic_ns()`.
    monotonic_ns: int
    #: Half of the shortest round trip, nanoseconds.
    uncertainty_ns: int

    def to_monotonic_ns(self, at_s: float) -> int:
        """Convert Redis time, seconds since 1970, to this host's monotonic clock, nanoseconds."""
        return round(at_s * 1e9) - self.monotonic_ns

    def told_ns(self, at_s: float, told_at: float, since_ns: int) -> int:
        """Convert `at_s`, a Redis time that another host sent, to this host's monotonic clock, ns.

        `told_at`: the Redis time at which it was sent. `since_ns`: a monotonic time here before
        that. If `told_at` is not between `since_ns` and now, the clock of Redis was set: then the
        result is `at_s - told_at` seconds from now.
        """
        now_ns = time.monotonic_ns()
        if since_ns - _SET_NS <= self.to_monotonic_ns(told_at) <= now_ns + _SET_NS:
            return self.to_monotonic_ns(at_s)
        return now_ns + round((at_s - told_at) * 1e9)

    def at_s(self, monotonic_ns: int) -> float:
        """Convert this host's monotonic clock, nanoseconds, to Redis time, seconds since 1970."""
        return (monotonic_ns + self.monotonic_ns) / 1e9

    def now_s(self) -> float:
        """Return the current Redis time, seconds since 1970."""
        return self.at_s(time.monotonic_ns())

    @property
    def wall_s(self) -> float:
        """Return Redis time minus this host's wall clock, in seconds, at the time of the call."""
        return (self.monotonic_ns + time.monotonic_ns() - time.time_ns()) / 1e9


def measure(client: Client, samples: int = 9, within_s: float = math.inf) -> ClockOffset:
    """Measure Redis time by up to `samples` round trips; return the offset of the shortest one.

    No round trip begins more than `within_s` seconds after the start, except the first. Raises
    StoreUnreachable, StoreError.
    """
    wire = Wire(client)
    best: ClockOffset | None = None
    deadline = time.monotonic() + within_s
    for _ in range(samples):
        if best is not None and time.monotonic() > deadline:
            break
        before = time.monotonic_ns()
        redis_us = wire.time_us()
        after = time.monotonic_ns()
        found = ClockOffset(
            monotonic_ns=redis_us * 1000 - (before + after) // 2,
            uncertainty_ns=(after - before) // 2,
        )
        if best is None or found.uncertainty_ns < best.uncertainty_ns:
            best = found
    assert best is not None
    return best


class RedisClock:
    """Redis time on the coordinator's host, computed from the last measurement.

    The clock of Redis may be set under load, so a workload keeps its start on the monotonic clock
    and converts it whenever it is sent.
    """

    def __init__(self, client: Client) -> None:
        """Measure the offset by round trips to Redis. Raises StoreUnreachable, StoreError."""
        self._client = client
        self.measure()

    def measure(self) -> None:
        """Measure the offset again by nine round trips. Raises StoreUnreachable, StoreError."""
        self._offset = measure(self._client)
        self._measured = time.monotonic()

    def refresh(self, age_s: float = _FRESH_S) -> None:
        """Measure again if the last measurement is older than `age_s` seconds.

        Begins no round trip after 0.1 s, to be quick under load. Raises StoreUnreachable,
        StoreError.
        """
        if time.monotonic() - self._measured > age_s:
            self._offset = measure(self._client, within_s=_WITHIN_S)
            self._measured = time.monotonic()

    @property
    def trip_s(self) -> float:
        """The shortest round trip to Redis of the last measurement, seconds."""
        return 2 * self._offset.uncertainty_ns / 1e9

    def now_s(self) -> float:
        """Return the current Redis time, seconds since 1970."""
        return self._offset.now_s()

    def at_s(self, monotonic_ns: int) -> float:
        """Convert this host's monotonic clock, nanoseconds, to Redis time, seconds since 1970."""
        return self._offset.at_s(monotonic_ns)

    def to_monotonic_ns(self, at_s: float) -> int:
        """Convert Redis time, seconds since 1970, to this host's monotonic clock, nanoseconds."""
        return self._offset.to_monotonic_ns(at_s)

    def since_s(self, monotonic_ns: int) -> float:
        """Return the seconds from `monotonic_ns`, of this host's monotonic clock, until now."""
        return (time.monotonic_ns() - monotonic_ns) / 1e9
