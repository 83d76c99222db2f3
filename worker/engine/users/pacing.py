"""Pauses between iterations: think times, and a limit on the rate of a worker process."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
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
        draw = _bounded_draw(low, high, lambda: random.gauss(middle, (high - low) / 6))
    elif kind == "exponential":
        draw = _bounded_draw(low, high, lambda: random.expovariate(1 / middle))
    else:
        draw = lambda: random.uniform(low, high)  # noqa: E731, S311 - load, not secrets
    return lambda: int(draw() * 1e9)


def _bounded_draw(low: float, high: float, draw: Callable[[], float]) -> Callable[[], float]:
    def drawn() -> float:
        for _ in range(DRAWS):
            value = draw()
            if low <= value <= high:
                return value
        return min(max(value, low), high)

    return drawn


#: The part of a process that has all users, from the first turn on.
WHOLE = (0, 1, 1, 0)
#: A turn that does not come, nanoseconds.
NEVER_NS = 1 << 62
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
        #: Rate of all processes; the first turn of all, monotonic nanoseconds.
        self._rule: tuple[float, int] = (0.0, 0)
        #: Parts of the turns that this process has: users, begin and end, among all users, and the
        #: turn from which this holds. The one that holds now and the next one.
        self._parts: list[tuple[int, ...]] = [WHOLE]
        #: Mean distance of the turns of this process, nanoseconds.
        self._apart_ns = 0
        self._next_ns = 0
        #: The last turn that a user took; 0 if none was taken.
        self._used_ns = 0
        self._changes = 0
        self._lock = threading.Lock()

    def set_rate(self, rate: float, first_ns: int | None = None, part: Sequence[int] = ()) -> None:
        """Set the rate limit of all processes, iterations per second; 0 means no limit.

        `first_ns`: their first turn, monotonic nanoseconds; by default now, or unchanged with the
        rate. `part`: begin and end of the users of this process, the number of all users, and the
        number of the turn (from 0) from which this holds; by default this process has all. Users
        that wait get a turn of the new rate; a change of the part alone spares earlier turns.
        """
        if first_ns is None:
            first_ns = self._rule[1] if rate == self._rule[0] else monotonic_ns()
        rule, part = (max(0.0, rate), first_ns), tuple(part) or WHOLE
        with self._lock:
            if rule == self._rule and part == self._parts[-1]:
                return
            before = self._parts if rule == self._rule else []
            # users that wait take a turn of the new rate
            after_ns = 1 if before or not rate else int(1e9 / rate)
            self._parts = [*[one for one in before if one[3] < part[3]][-1:], part]
            self._rule = rule
            self.limits = rate > 0
            if not self.limits:
                self._changes += 1
                return
            begin, end, users, _ = part
            self._apart_ns = int(1e9 / rate * users / max(1, end - begin))
            self._deal_again(after_ns)

    def turns(self, turn: int, free_ns: int) -> Generator[int, None, int]:
        """Wait for a turn: yields times to sleep until, monotonic ns; its return value is the turn.

        Returns 0 without a limit. `turn` is a turn that the user got before and did not use, 0 if
        none: it holds until the next turn would begin. `free_ns` is the time from which the user is
        free, monotonic nanoseconds.
        """
        if turn and monotonic_ns() - turn <= self._apart_ns:
            return turn
        while self.limits:
            at, changes = self._take(max(free_ns, monotonic_ns()))
            try:
                while changes == self._changes:
                    now = monotonic_ns()
                    if now >= at:
                        self._used_ns = max(self._used_ns, at)
                        return at
                    yield min(at, now + NOTICE_NS)
            except GeneratorExit:
                # the user waits no longer: its turn is another one's
                with self._lock:
                    if self.limits:
                        self._deal_again(1)
                raise
        return 0

    def _deal_again(self, after_ns: int) -> None:
        self._next_ns = self._from(self._used_ns + after_ns if self._used_ns else 0)
        self._changes += 1

    def _take(self, free_ns: int) -> tuple[int, int]:
        with self._lock:
            at = self._next_ns
            if at < free_ns:
                # half of the way: turns of a process are not at even distances
                following = self._from(free_ns)
                late_ns = free_ns - self._until(free_ns)
                at = following if following - free_ns < late_ns else free_ns
            self._next_ns = self._from(at + 1)
            return at, self._changes

    def _from(self, at_ns: int) -> int:
        """Return the first turn of this process at or after `at_ns`, monotonic nanoseconds.

        `NEVER_NS` if it has none, as it has no users.
        """
        rate, first_ns = self._rule
        held = [part for part in self._parts if part[0] < part[1]]
        ends = self._parts[-1] not in held
        number = max(0, math.ceil((at_ns - first_ns) * rate / 1e9), *(part[3] for part in held[:1]))
        while not self._is_own(number):
            if not held or (ends and number >= self._parts[-1][3]):
                return NEVER_NS
            number += 1
        return self._at(number)

    def _until(self, at_ns: int) -> int:
        """Return the last turn of this process at or before `at_ns`, monotonic nanoseconds.

        There must be one.
        """
        rate, first_ns = self._rule
        number = math.ceil((at_ns - first_ns) * rate / 1e9)
        while self._at(number) > at_ns or not self._is_own(number):
            number -= 1
        return self._at(number)

    def _is_own(self, number: int) -> bool:
        """Turn k is of user k x stride, modulo the number of users."""
        for begin, end, users, first in reversed(self._parts):
            if number >= first:
                return begin <= number * _stride(users) % users < end
        return False

    def _at(self, number: int) -> int:
        rate, first_ns = self._rule
        return first_ns + math.ceil(number * 1e9 / rate)


@lru_cache
def _stride(users: int) -> int:
    """Return a number without a common divisor with `users`, near the golden section of it.

    Its multiples, modulo `users`, are spread evenly: so are the turns of each process.
    """
    found = max(1, round(users * 0.618))
    while math.gcd(found, users) > 1:
        found += 1
    return found
