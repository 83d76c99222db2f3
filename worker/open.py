"""The open engine: arrivals start at their due instants, whether or not others have ended.

Leader and follower: one idle virtual user, the leader, sleeps to the next due instant while it
holds the turn; then it passes the turn on and runs the arrival itself. No hand-off through a
queue stands between the instant and the start.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from time import monotonic_ns

import numpy as np

from osbench.common.intervals import Interval, Intervals
from osbench.common.messages import Batch
from osbench.common.outcomes import Outcome
from osbench.worker.body import Body
from osbench.worker.engine import Engine, User

#: Longest sleep of the leader: an earlier arrival that comes in meanwhile is seen after it.
NAP_NS = 20_000_000
#: Idle users kept ready behind the leader.
SPARE = 2


class OpenEngine(Engine):
    """Starts claimed arrivals on at most `share` users; what is too late is dropped."""

    def __init__(
        self,
        body: Body,
        t0_ns: int,
        stop_ns: int,
        hungry: Callable[[], None],
        *,
        max_lag_ns: int,
        at_limit: Outcome,
    ) -> None:
        #: (due, iteration), a heap
        self._arrivals: list[tuple[int, int]] = []
        self._turn = threading.Lock()
        self._idle: list[None] = []
        self._max_lag_ns = max_lag_ns
        #: Why an arrival is dropped that found all users busy.
        self._at_limit = at_limit
        super().__init__(body, t0_ns, stop_ns, hungry)

    def add(self, batch: Batch) -> None:
        dues = (np.frombuffer(batch.dues, "<i8") + self.t0_ns).tolist()
        numbers = Intervals(batch.intervals).members().tolist()
        for arrival in zip(dues, numbers, strict=True):
            heapq.heappush(self._arrivals, arrival)

    @property
    def queued(self) -> int:
        return len(self._arrivals)

    def take_back(self) -> list[Interval]:
        found = []
        while self._arrivals:
            try:
                found.append(heapq.heappop(self._arrivals)[1])
            except IndexError:
                break
        return list(Intervals.of(np.array(found, np.int64)))

    def hire(self) -> None:
        """Users are started as arrivals need them; only the first few at once."""
        for number in range(min(self.share, SPARE + 1)):
            if number not in self._users:
                self._start_user(number)

    def serve(self, user: User) -> None:
        while True:
            self._idle.append(None)
            with self._turn:
                self._idle.pop()
                arrival = self._next()
                if arrival is None:
                    return
                if len(self._idle) < SPARE and len(self._users) < self.share:
                    with self._changed:
                        self._start_user(len(self._users))
            due, iteration = arrival
            if not self.run(iteration, due, monotonic_ns(), user):
                return

    def _next(self) -> tuple[int, int] | None:
        """Sleep to the next arrival that may start and take it; None to leave."""
        arrivals = self._arrivals
        while not self.stopped:
            now = monotonic_ns()
            if not arrivals or now >= self.stop_ns:
                self._rest()
                continue
            wait = arrivals[0][0] - now
            if wait > NAP_NS:
                time.sleep(NAP_NS / 1e9)
                continue
            if wait > 0:
                time.sleep(wait / 1e9)
            try:
                due, iteration = heapq.heappop(arrivals)
            except IndexError:
                continue
            if due > monotonic_ns():
                # an earlier one was added and taken back meanwhile, or the sleep was cut short
                heapq.heappush(arrivals, (due, iteration))
                continue
            if monotonic_ns() - due > self._max_lag_ns:
                self._drop(due, iteration, self._why())
                continue
            return due, iteration
        return None

    def _rest(self) -> None:
        if not self._arrivals:
            self._hungry()
        time.sleep(NAP_NS / 1e9 / 4)

    def _why(self) -> Outcome:
        busy = len(self._users) >= self.share and not self._idle
        return self._at_limit if busy else Outcome.DROPPED_LATE

    def _drop(self, due: int, iteration: int, why: Outcome) -> None:
        now = monotonic_ns()
        self.rows.append((iteration, int(why), due, now, now, 0, 0, (), None))

    def look(self, now: int) -> None:
        """Drop what no user could start in time, as soon as it is too late."""
        if not self._arrivals or not self._turn.acquire(blocking=False):
            return
        # nobody has the turn: all users are busy
        try:
            while self._arrivals and now - self._arrivals[0][0] > self._max_lag_ns:
                due, iteration = heapq.heappop(self._arrivals)
                self._drop(due, iteration, self._why())
        finally:
            self._turn.release()
