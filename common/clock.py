"""Redis time on a host's own monotonic clock.

Each host measures how far Redis `TIME` is ahead of its monotonic clock: the sample with the
shortest round trip bounds the error by half of that trip (Cristian 1989). Wall clocks, which
may be wrong or stepped, are not used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from osbench.common.protocol.redis_client import Client, reached


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """Redis time minus a monotonic clock."""

    #: Nanoseconds to add to `time.monotonic_ns()`.
    monotonic_ns: int
    #: Half of the shortest round trip, nanoseconds.
    uncertainty_ns: int

    def to_monotonic_ns(self, at_s: float) -> int:
        """The instant of this host's monotonic clock for a Redis time in seconds."""
        return round(at_s * 1e9) - self.monotonic_ns

    def now_s(self) -> float:
        """Redis time now, seconds since 1970."""
        return (time.monotonic_ns() + self.monotonic_ns) / 1e9

    @property
    def wall_s(self) -> float:
        """Redis time minus this host's wall clock, seconds."""
        return (self.monotonic_ns + time.monotonic_ns() - time.time_ns()) / 1e9


def measure(client: Client, samples: int = 9) -> ClockOffset:
    """Measure the offset by several round trips. Raises StoreAway, StoreError."""
    best: ClockOffset | None = None
    for _ in range(samples):
        before = time.monotonic_ns()
        with reached():
            seconds, micros = client.time()
        after = time.monotonic_ns()
        found = ClockOffset(
            monotonic_ns=(seconds * 1_000_000 + micros) * 1000 - (before + after) // 2,
            uncertainty_ns=(after - before) // 2,
        )
        if best is None or found.uncertainty_ns < best.uncertainty_ns:
            best = found
    assert best is not None
    return best
