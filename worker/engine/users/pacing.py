"""Pauses between iterations: think times, and a limit on the rate of a worker process."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from typing import Any

from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns

#: How often a value outside the bounds is drawn again, before it is moved to the nearest bound.
DRAWS = 20


def thinking(wish: Mapping[str, Any]) -> Callable[[], int] | None:
    """Return a function that draws a think time, nanoseconds; None if users do not pause.

    `wish` is the task's key `think`: min and max (seconds; max is min unless given), and
    distribution: "uniform", "normal" (the middle of the two as its mean, a sixth of the way between
    them as its deviation) or "exponential" (the middle as its mean). Values outside min and max are
    drawn again, at most `DRAWS` times, then moved to the bound.
    """
    if not wish:
        return None
    low, high = float(wish["min"]), float(wish.get("max", wish["min"]))
    middle = (low + high) / 2
    if high <= 0:
        return None
    if low == high:
        return lambda: int(low * 1e9)
    draw: Callable[[], float]
    kind = wish.get("distribution", "uniform")
    if kind == "normal":
        draw = _within(low, high, lambda: random.gauss(middle, (high - low) / 6))
    elif kind == "exponential":
        draw = _within(low, high, lambda: random.expovariate(1 / middle))
    else:
        draw = lambda: random.uniform(low, high)  # noqa: E731, S311 - load, not secrets
    return lambda: int(draw() * 1e9)


def _within(low: float, high: float, draw: Callable[[], float]) -> Callable[[], float]:
    def drawn() -> float:
        for _ in range(DRAWS):
            value = draw()
            if low <= value <= high:
                return value
        return min(max(value, low), high)

    return drawn


#: Users that wait for their turn notice a new rate after so long, nanoseconds.
NOTICE_NS = 500_000_000


class Pacing:
    """Rate limit of the iterations of this process: turns at an even distance. Thread-safe.

    A turn is the time at which one iteration may start. Missed turns are not made up for.
    """

    def __init__(self) -> None:
        #: Whether a rate limit is set. Not a property: users look at it before each iteration.
        self.limits = False
        self._interval_ns = 0
        self._next_ns = 0
        #: The last turn that a user took; 0 if none was taken.
        self._used_ns = 0
        self._changes = 0
        self._lock = threading.Lock()

    def set_rate(self, rate: float) -> None:
        """Set the rate limit of this process, iterations per second; 0 means no limit.

        Users that wait get a turn of the new rate.
        """
        interval_ns = int(1e9 / rate) if rate > 0 else 0
        with self._lock:
            if interval_ns == self._interval_ns:
                return
            # users that wait take a turn of the new rate
            self._interval_ns = interval_ns
            self.limits = interval_ns > 0
            # the clock may be younger than an interval: who has had no turn waits for none
            self._next_ns = self._used_ns + interval_ns if self._used_ns else 0
            self._changes += 1

    def turns(self, turn: int, free_ns: int) -> Generator[int, None, int]:
        """Wait for a turn: yields times to sleep until, monotonic ns; returns the turn.

        Returns 0 without a limit. `turn` is a turn that the user got before and did not use, 0 if
        none: it holds until the next turn would begin. `free_ns` is the time from which the user is
        free, monotonic nanoseconds.
        """
        if turn and monotonic_ns() - turn <= self._interval_ns:
            return turn
        while self.limits:
            at, changes = self._take(max(free_ns, monotonic_ns()))
            while changes == self._changes:
                now = monotonic_ns()
                if now >= at:
                    self._used_ns = max(self._used_ns, at)
                    return at
                yield min(at, now + NOTICE_NS)
        return 0

    def _take(self, free_ns: int) -> tuple[int, int]:
        with self._lock:
            at = max(free_ns, self._next_ns)
            self._next_ns = at + self._interval_ns
            return at, self._changes
