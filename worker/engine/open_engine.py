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
from osbench.worker.engine.engine import GIVEN_UP, LEASE_OVER, Engine, User
from osbench.worker.engine.will_page import WillPage

#: Longest sleep of the leader: an earlier arrival that is added meanwhile is noticed after it.
NAP_NS = 20_000_000
#: Sleep of the leader while there is no arrival.
REST_NS = 5_000_000
#: Idle users in addition to the leader.
SPARE = 2
#: Least time to the next arrival for the leader to start a thread before it.
THREAD_START_NS = 1_000_000

#: Due instant, iteration number, and the batch that it is of.
Arrival = tuple[int, int, int]


class OpenEngine(Engine):
    """Starts granted arrivals on at most `share` users; late arrivals are dropped."""

    def __init__(
        self,
        body: Body,
        t0_ns: int,
        stop_ns: int,
        request_work: Callable[[], None],
        *,
        max_lag_ns: int,
        at_limit: Outcome,
        page: WillPage | None = None,
    ) -> None:
        #: A heap. heapq's functions are atomic for tuples of integers: arrivals may be added
        #: while the leader pops.
        self._arrivals: list[Arrival] = []
        self._turn = threading.Lock()
        self._idle: list[None] = []
        self._max_lag_ns = max_lag_ns
        #: The reason for dropping arrivals while all users are busy.
        self._at_limit = at_limit
        #: The last instant at which all users were busy and no more could be started.
        self._full_until = 0
        self._requested = False
        super().__init__(body, t0_ns, stop_ns, request_work, page)

    def add(self, batch: Batch) -> None:
        dues = (np.frombuffer(batch.dues, "<i8") + self.t0_ns).tolist()
        numbers = Intervals(batch.intervals).members().tolist()
        self.added += len(numbers)
        self._last_seq = max(self._last_seq, batch.seq)
        for due, number in zip(dues, numbers, strict=True):
            heapq.heappush(self._arrivals, (due, number, batch.seq))

    @property
    def queued(self) -> int:
        return len(self._arrivals)

    @property
    def min_users(self) -> int:
        # more are started as arrivals need them
        return min(self.share, SPARE + 1)

    def take_back(self, seq: int | None = None) -> list[Interval]:
        found, others = [], []
        with self._changed:
            self._recall(seq)
            # what is popped here no user can pop
            while (arrival := self._pop()) is not None:
                if seq in (None, arrival[2]):
                    found.append(arrival[1])
                else:
                    others.append(arrival)
            for arrival in others:
                heapq.heappush(self._arrivals, arrival)
        return list(Intervals.of(np.array(found, np.int64)))

    def _pop(self) -> Arrival | None:
        try:
            return heapq.heappop(self._arrivals)
        except IndexError:
            return None

    def _keep(self, arrival: Arrival) -> None:
        """Put back an arrival that was popped and not started."""
        _, iteration, seq = arrival
        with self._changed:
            if self._is_recalled(seq):
                self.give_back([(iteration, iteration + 1)])
            else:
                heapq.heappush(self._arrivals, arrival)

    def serve(self, user: User) -> None:
        while True:
            self._idle.append(None)
            with self._turn:
                self._idle.pop()
                arrival = self._next(user)
            if arrival is None:
                self.remove_user(user)
                return
            due, iteration, _ = arrival
            ended = self.run(iteration, due, user)
            if ended == GIVEN_UP:
                return
            if ended == LEASE_OVER:
                self._keep(arrival)
            if self._full and not self._turn.locked():
                self._full_until = monotonic_ns()

    @property
    def _full(self) -> bool:
        """No user waits for the turn, and no more may be started."""
        return not self._idle and len(self._users) >= self.share

    def _next(self, user: User) -> Arrival | None:
        """Sleep until the next arrival and take it; None if the user must end."""
        arrivals = self._arrivals
        started = False
        while not self.stopped and user.number < self.share:
            now = monotonic_ns()
            # after the stop instant the watchdog returns all arrivals
            first = arrivals[:1]
            if not first or now >= self.until_ns:
                if now < self.stop_ns:
                    self._drop_late(now, full=False)
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
            arrival = self._pop()
            if arrival is None:
                continue
            due, iteration, seq = arrival
            now = monotonic_ns()
            if due > now:
                # an earlier arrival was returned meanwhile, or the sleep was interrupted
                self._keep(arrival)
            elif now - due > self._max_lag_ns:
                self._drop(due, iteration, full=False)
            else:
                self._requested = False
                if self._page is not None:
                    self._page.take(due - self.t0_ns, seq)
                return arrival
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
            self._drop_late(now, full=self._full)
        finally:
            self._turn.release()

    def _drop_late(self, now: int, *, full: bool) -> None:
        """Drop the arrivals that are too late; call with the turn held."""
        while (first := self._arrivals[:1]) and now - first[0][0] > self._max_lag_ns:
            arrival = self._pop()
            if arrival is None:
                return
            due, iteration, _ = arrival
            if now - due > self._max_lag_ns:
                self._drop(due, iteration, full=full)
            else:
                # the late one was taken back meanwhile
                self._keep(arrival)
