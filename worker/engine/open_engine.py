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
from osbench.common.outcomes import Outcome
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.body import Body
from osbench.worker.engine.engine import GIVEN_UP, Engine, User

#: Longest sleep of the leader: an earlier arrival that comes in meanwhile is seen after it.
NAP_NS = 20_000_000
#: Sleep of the leader that has no arrival to wait for.
REST_NS = 5_000_000
#: Idle users kept ready behind the leader.
SPARE = 2
#: What starting a thread may take out of the time to the next arrival.
THREAD_START_NS = 1_000_000


class OpenEngine(Engine):
    """Starts claimed arrivals on at most `share` users; what is too late is dropped."""

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
        #: (due, iteration), a heap. heapq's functions on tuples of integers never let another
        #: thread run: the claimer pushes while the one that has the turn pops.
        self._arrivals: list[tuple[int, int]] = []
        self._turn = threading.Lock()
        self._idle: list[None] = []
        self._max_lag_ns = max_lag_ns
        #: Why an arrival is dropped that found all users busy.
        self._at_limit = at_limit
        #: Until when all users that there may be were busy.
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
        """Sleep to the next arrival that may start and take it; None to leave."""
        arrivals = self._arrivals
        started = False
        while not self.stopped and user.number < self.share:
            now = monotonic_ns()
            # the watchdog takes all back once nothing may start
            first = arrivals[:1]
            if not first or now >= self.stop_ns:
                self._rest()
                continue
            wait = first[0][0] - now
            # one a turn: the new one is not yet seen to be idle
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
                # an earlier one was taken back meanwhile, or the sleep was cut short
                heapq.heappush(arrivals, (due, iteration))
            elif now - due > self._max_lag_ns:
                self._drop(due, iteration, full=False)
            else:
                self._requested = False
                return due, iteration
        return None

    def _scarce(self, wait_ns: int) -> bool:
        """Few users are idle, and there is time to start one, or nobody is left to lead."""
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
        """Drop what no user could start in time, as soon as it is too late."""
        if not self._arrivals or not self._turn.acquire(blocking=False):
            return
        # nobody has the turn: all users are busy, or one is just about to take it
        try:
            while self._arrivals and now - self._arrivals[0][0] > self._max_lag_ns:
                due, iteration = heapq.heappop(self._arrivals)
                self._drop(due, iteration, full=self._full)
        finally:
            self._turn.release()
