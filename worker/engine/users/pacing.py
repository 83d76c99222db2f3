"""Pauses between iterations: think times, and a limit on the rate of a worker process."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Mapping, Sequence
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


#: The part of a process that has all users.
WHOLE = (0, 1, 1)
#: Users that wait for their turn notice a new rate after so long, nanoseconds.
NOTICE_NS = 500_000_000


class Pacing:
    """Rate limit of the iterations of this process: its turns among all turns. Thread-safe.

    A turn is the time at which one iteration may start. Turns of all processes are at an even
    distance. A user may take a turn late, before half of the way to the next turn; missed turns are
    not made up for.
    """

    def __init__(self) -> None:
        #: Whether a rate limit is set. Not a property: users look at it before each iteration.
        self.limits = False
        #: Rate of all processes; the first turn of all, monotonic nanoseconds; users of this
        #: process, begin and end, among all users.
        self._rule: tuple[float, int, tuple[int, ...]] = (0.0, 0, WHOLE)
        self._stride = 1
        #: Mean distance of the turns of this process, nanoseconds.
        self._apart_ns = 0
        self._next_ns = 0
        #: The last turn that a user took; 0 if none was taken.
        self._used_ns = 0
        self._changes = 0
        self._lock = threading.Lock()

    def set_rate(self, rate: float, first_ns: int | None = None, part: Sequence[int] = ()) -> None:
        """Set the rate limit of all processes, iterations per second; 0 means no limit.

        `first_ns`: their first turn, monotonic nanoseconds; now by default. `part`: begin and end
        of the users of this process, and the number of all users; by default this process has all.
        Users that wait get a turn of the new rate.
        """
        if first_ns is None:
            first_ns = self._rule[1] if rate == self._rule[0] else monotonic_ns()
        rule = (max(0.0, rate), first_ns, tuple(part) or WHOLE)
        with self._lock:
            if rule == self._rule:
                return
            # users that wait take a turn of the new rate
            self._rule, self._stride = rule, _stride(rule[2][2])
            self.limits = rate > 0
            self._next_ns = self._apart_ns = 0
            if self.limits:
                begin, end, users = rule[2]
                self._apart_ns = int(1e9 / rate * users / (end - begin))
                self._next_ns = self._from(self._used_ns + self._apart_ns if self._used_ns else 0)
            self._changes += 1

    def turns(self, turn: int, free_ns: int) -> Generator[int, None, int]:
        """Wait for a turn: yields times to sleep until, monotonic ns; returns the turn.

        Returns 0 without a limit. `turn` is a turn that the user got before and did not use, 0 if
        none: it holds until the next turn would begin. `free_ns` is the time from which the user is
        free, monotonic nanoseconds.
        """
        if turn and monotonic_ns() - turn <= self._apart_ns:
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
            following = self._from(at)
            if following - at < self._apart_ns // 2:
                at = following
            self._next_ns = self._from(at + 1)
            return at, self._changes

    def _from(self, at_ns: int) -> int:
        """Return the first turn of this process at or after `at_ns`, monotonic nanoseconds.

        Turn k of all is of user k x stride, modulo the number of users.
        """
        rate, first_ns, (begin, end, users) = self._rule
        number = max(0, math.ceil((at_ns - first_ns) * rate / 1e9))
        while not begin <= number * self._stride % users < end:
            number += 1
        return first_ns + math.ceil(number * 1e9 / rate)


def _stride(users: int) -> int:
    """Return a number without a common divisor with `users`, near the golden section of it.

    Its multiples, modulo `users`, are spread evenly: so are the turns of each process.
    """
    found = max(1, round(users * 0.618))
    while math.gcd(found, users) > 1:
        found += 1
    return found
