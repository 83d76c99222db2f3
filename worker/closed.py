"""The closed engine: each virtual user starts its next iteration when its last one is over."""

from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic_ns

from osbench.common.intervals import Interval, Intervals
from osbench.common.messages import Batch
from osbench.worker.body import Body
from osbench.worker.engine import Engine, User


class ClosedEngine(Engine):
    """Runs claimed numbers on `share` users. A number is due when its user became free."""

    def __init__(self, body: Body, t0_ns: int, stop_ns: int, hungry: Callable[[], None]) -> None:
        self._claimed: deque[Interval] = deque()
        # one iterator is shared by all users: next() on a range iterator is atomic
        self._source: Iterator[int] = iter(range(0))
        super().__init__(body, t0_ns, stop_ns, hungry)

    def add(self, batch: Batch) -> None:
        with self._changed:
            self._claimed.extend(batch.intervals)
            self._changed.notify_all()

    @property
    def queued(self) -> int:
        waiting = sum(high - low for low, high in list(self._claimed))
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
        due = max(self.t0_ns, monotonic_ns() if wait_s < -0.05 else self.t0_ns)
        source = self._source
        run = self.run
        while True:
            iteration = next(source, 0)
            started = monotonic_ns()
            if iteration and user.number < self.share and started < self.stop_ns:
                if not run(iteration, due, started, user):
                    return
                due = monotonic_ns()
                continue
            if iteration:
                self.give_back([(iteration, iteration + 1)])
            found = self._more(user, source)
            if found is None:
                return
            source, parked = found
            if parked:
                due = monotonic_ns()

    def _more(self, user: User, old: Iterator[int]) -> tuple[Iterator[int], bool] | None:
        """Wait for the next source of numbers; None to leave. True if the user was parked."""
        begin = monotonic_ns()
        parked = False
        with self._changed:
            while True:
                if self.stopped:
                    return None
                if user.number >= self.share:
                    parked = True
                elif monotonic_ns() >= self.stop_ns:
                    pass
                elif self._source is not old and operator.length_hint(self._source):
                    break
                elif self._claimed:
                    low, high = self._claimed.popleft()
                    self._source = iter(range(low, high))
                    if not self._claimed:
                        self._hungry()
                    break
                else:
                    old = self._source
                    self._hungry()
                self._changed.wait(0.5)
            if not parked:
                self.want_ns += monotonic_ns() - max(begin, self.t0_ns)
            return self._source, parked
