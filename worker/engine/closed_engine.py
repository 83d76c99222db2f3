"""The closed engine: each virtual user starts its next iteration when its last one is over."""

from __future__ import annotations

import operator
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic_ns

from osbench.common.intervals import Interval, Intervals
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.body import Body
from osbench.worker.engine.engine import GIVEN_UP, NEVER, NOT_STARTED, Engine, User


class ClosedEngine(Engine):
    """Runs claimed numbers on `share` users. A number is due when its user became free."""

    def __init__(
        self, body: Body, t0_ns: int, stop_ns: int, request_work: Callable[[], None]
    ) -> None:
        self._claimed: deque[Interval] = deque()
        # one iterator is shared by all users: next() on a range iterator is atomic
        self._source: Iterator[int] = iter(range(0))
        super().__init__(body, t0_ns, stop_ns, request_work)

    def add(self, batch: Batch) -> None:
        with self._changed:
            self.added += len(batch)
            self._claimed.extend(batch.intervals)
            self._changed.notify_all()

    @property
    def queued(self) -> int:
        waiting = sum(high - low for low, high in self._claimed.copy())
        return waiting + operator.length_hint(self._source)

    def take_back(self) -> list[Interval]:
        with self._changed:
            rest = Intervals(self._claimed)
            self._claimed.clear()
            # in one step of the interpreter: no user can take a number in between
            left = list(self._source)
            if left:
                rest.add(left[0], left[-1] + 1)
            return list(rest)

    def serve(self, user: User) -> None:
        wait_s = (self.t0_ns - monotonic_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        due = user.free_ns
        source: Iterator[int] = iter(range(0))
        run = self.run
        while True:
            iteration = next(source, 0)
            if iteration:
                ended = run(iteration, due, user)
                if ended > NOT_STARTED:
                    due = ended
                    continue
                if ended == GIVEN_UP:
                    return
            found = self._more(user, due)
            if found is None:
                return
            source, due = found

    def _more(self, user: User, due: int) -> tuple[Iterator[int], int] | None:
        """Wait until the user may start an iteration; None if the user must end.

        Returns a source of numbers and the instant from which the user was free: `due`, or later
        if the user was outside the share.
        """
        begin = monotonic_ns()
        parked = False
        # with a stop instant, the wait until then counts as waiting for work
        until_stop = self.stop_ns < NEVER
        with self._changed:
            while not self.stopped:
                now = monotonic_ns()
                if user.number >= self.share:
                    parked = True
                elif now < self.stop_ns:
                    if parked:
                        parked = False
                        begin = due = self._shared_ns
                    if self._refill():
                        self.want_ns += max(0, monotonic_ns() - begin)
                        return self._source, due
                    self._request_work()
                elif until_stop:
                    until_stop = False
                    if not parked:
                        self.want_ns += max(0, self.stop_ns - begin)
                        self._request_work()
                self._changed.wait(self._left_s(now) if until_stop else None)
        return None

    def _left_s(self, now: int) -> float:
        """Seconds to the stop instant, at most the system's longest wait."""
        return min(max(0, self.stop_ns - now) / 1e9, threading.TIMEOUT_MAX)

    def _refill(self) -> bool:
        """Refill the source that all users share; False where no number is claimed."""
        if operator.length_hint(self._source):
            return True
        if not self._claimed:
            return False
        low, high = self._claimed.popleft()
        self._source = iter(range(low, high))
        if not self._claimed:
            self._request_work()
        return True
