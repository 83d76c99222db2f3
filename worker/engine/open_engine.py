"""The open engine: arrivals start at their due instants, whether or not others have ended.

Leader and followers: one idle virtual user, the leader, holds the lock `_turn` and sleeps until
the next due instant; then it releases the lock and runs the arrival itself. So no hand-off
through a queue delays the start.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from time import monotonic_ns

import numpy as np

from osbench.common.intervals import Interval, Intervals
from osbench.common.outcomes import Outcome
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.body import Body
from osbench.worker.engine.engine import GIVEN_UP, Engine, User

#: Longest sleep of the leader: an earlier arrival that is added meanwhile is noticed after it.
NAP_NS = 20_000_000
#: Sleep of the leader while there is no arrival.
REST_NS = 5_000_000
#: Idle users in addition to the leader.
SPARE = 2
#: Least time to the next arrival for the leader to start a thread before it.
THREAD_START_NS = 1_000_000


class OpenEngine(Engine):
    """Starts claimed arrivals on at most `share` users; late arrivals are dropped."""

    def __init__(
        self,
        body: Body,
        t0_ns: int,
        stop_ns: int,
        request_work: Callable[[], None],
        *,
        max_lag_ns: int,
        at_limit: Outcome,
    ) -> None:
        #: A heap of (due, iteration). heapq's functions are atomic for tuples of integers: the
        #: claimer may push while the leader pops.
        self._arrivals: list[tuple[int, int]] = []
        self._turn = threading.Lock()
        self._idle: list[None] = []
        self._max_lag_ns = max_lag_ns
        #: The reason for dropping arrivals while all users are busy.
        self._at_limit = at_limit
        #: The last instant at which all users were busy and no more could be started.
        self._full_until = 0
        self._requested = False
        super().__init__(body, t0_ns, stop_ns, request_work)

    def add(self, batch: Batch) -> None:
        dues = (np.frombuffer(batch.dues, "<i8") + self.t0_ns).tolist()
        numbers = Intervals(batch.intervals).members().tolist()
        self.added += len(numbers)
        for arrival in zip(dues, numbers, strict=True):
            heapq.heappush(self._arrivals, arrival)

    @property
    def queued(self) -> int:
        return len(self._arrivals)

    @property
    def min_users(self) -> int:
        # more are started as arrivals need them
        return min(self.share, SPARE + 1)

    def take_back(self) -> list[Interval]:
        found = []
        while self._arrivals:
            try:
                found.append(heapq.heappop(self._arrivals)[1])
            except IndexError:
                break
        return list(Intervals.of(np.array(found, np.int64)))

    def serve(self, user: User) -> None:
        while True:
            self._idle.append(None)
            with self._turn:
                self._idle.pop()
                arrival = self._next(user)
            if arrival is None:
                self.remove_user(user)
                return
            due, iteration = arrival
            if self.run(iteration, due, user) == GIVEN_UP:
                return
            if self._full and not self._turn.locked():
                self._full_until = monotonic_ns()

    @property
    def _full(self) -> bool:
        """No user waits for the turn, and no more may be started."""
        return not self._idle and len(self._users) >= self.share

    def _next(self, user: User) -> tuple[int, int] | None:
        """Sleep until the next arrival and take it; None if the user must end."""
        arrivals = self._arrivals
        started = False
        while not self.stopped and user.number < self.share:
            now = monotonic_ns()
            # after the stop instant the watchdog returns all arrivals
            first = arrivals[:1]
            if not first or now >= self.stop_ns:
                self._rest()
                continue
            wait = first[0][0] - now
            # one per turn: a new user is not counted as idle yet
            if not started and self._scarce(wait):
                started = True
                self._start_spare()
                continue
            if wait > 0:
                time.sleep(min(wait, NAP_NS) / 1e9)
            if wait > NAP_NS:
                continue
            try:
                due, iteration = heapq.heappop(arrivals)
            except IndexError:
                continue
            now = monotonic_ns()
            if due > now:
                # an earlier arrival was returned meanwhile, or the sleep was interrupted
                heapq.heappush(arrivals, (due, iteration))
            elif now - due > self._max_lag_ns:
                self._drop(due, iteration, full=False)
            else:
                self._requested = False
                return due, iteration
        return None

    def _scarce(self, wait_ns: int) -> bool:
        """Few users are idle and there is time to start one, or no idle user is left."""
        idle = len(self._idle)
        return (
            idle < SPARE
            and len(self._users) < self.share
            and (not idle or wait_ns > THREAD_START_NS)
        )

    def _start_spare(self) -> None:
        number = len(self._users)
        if number in self._users:
            number = next((n for n in range(self.share) if n not in self._users), number)
        self.start_user(number, monotonic_ns())

    def _rest(self) -> None:
        if not self._arrivals and not self._requested:
            self._requested = True
            self._request_work()
        time.sleep(REST_NS / 1e9)

    def _drop(self, due: int, iteration: int, *, full: bool) -> None:
        now = monotonic_ns()
        why = self._at_limit if full or due <= self._full_until else Outcome.DROPPED_LATE
        self.rows.append((iteration, int(why), due, now, now, 0, 0, (), None))

    def look(self, now: int) -> None:
        """Drop arrivals that no user started in time, as soon as they are too late."""
        if not self._arrivals or not self._turn.acquire(blocking=False):
            return
        # the lock was free: all users are busy, or one is just about to take it
        try:
            while self._arrivals and now - self._arrivals[0][0] > self._max_lag_ns:
                due, iteration = heapq.heappop(self._arrivals)
                self._drop(due, iteration, full=self._full)
        finally:
            self._turn.release()
