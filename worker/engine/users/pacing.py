"""A limit on the rate at which the users of a process start iterations of a closed load."""

from __future__ import annotations

from collections.abc import Generator

from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns

#: Users that wait for their turn notice a new rate after so long, nanoseconds.
NOTICE_NS = 500_000_000


class Pacing:
    """Hands out turns at an even distance, and no earlier ones later: nothing is made up for."""

    def __init__(self) -> None:
        self._interval_ns = 0
        self._next_ns = 0
        #: The last turn that somebody had; 0: nobody had one.
        self._used_ns = 0
        self._changes = 0
        self._lock = threading.Lock()

    def set_rate(self, rate: float) -> None:
        """Iterations a second from now on; 0 is no limit."""
        interval_ns = int(1e9 / rate) if rate > 0 else 0
        with self._lock:
            if interval_ns == self._interval_ns:
                return
            # users that wait take a turn of the new rate
            self._interval_ns = interval_ns
            # the clock may be younger than an interval: who has had no turn waits for none
            self._next_ns = self._used_ns + interval_ns if self._used_ns else 0
            self._changes += 1

    @property
    def limits(self) -> bool:
        """There is a limit."""
        return self._interval_ns > 0

    def turns(self, turn: int, free_ns: int) -> Generator[int, None, int]:
        """Wait for a turn: yields instants to sleep until, returns the turn; 0 without a limit.

        `turn` is one that the user had and did not use: it holds until the next one would begin.
        `free_ns` is the instant from which the user is free, monotonic nanoseconds.
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
