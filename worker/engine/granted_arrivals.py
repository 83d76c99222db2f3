"""Open load: arrivals start at their due times, whether or not others have ended."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.columns import row
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.engine import Engine, EngineSetup
from osbench.worker.engine.precise_sleep import PreciseSleep

#: Due time, iteration number, and the batch that it is of.
Arrival = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class ArrivalSetup(EngineSetup):
    """The parameters of an engine of open load, in addition to the parameters of all engines."""

    #: An arrival later than this is dropped, nanoseconds.
    max_lag_ns: int
    #: The reason for dropping arrivals while all users are busy.
    at_limit: Outcome
    sleep: PreciseSleep


class GrantedArrivals(Engine):
    """Base of the engines of open load: starts granted arrivals at due times.

    It has at most `user_limit` users. An arrival that did not start within `max_lag_ns` of its due
    time is dropped: it gets a row with the reason instead of an iteration.
    """

    def __init__(self, setup: ArrivalSetup) -> None:
        #: A heap. heapq's functions are atomic for tuples of integers: arrivals may be added
        #: while users pop.
        self._arrivals: list[Arrival] = []
        self._max_lag_ns = setup.max_lag_ns
        self._sleep = setup.sleep
        self._at_limit = setup.at_limit
        #: The last time at which all users were busy and no more could be started.
        self._full_until = 0
        self._requested = False
        super().__init__(setup)

    def add(self, batch: Batch) -> None:
        dues = (np.frombuffer(batch.dues, "<i8") + self.t0_ns).tolist()
        numbers = Intervals(batch.intervals).members().tolist()
        self.added += len(numbers)
        self._last_seq = max(self._last_seq, batch.seq)
        for due, number in zip(dues, numbers, strict=True):
            heapq.heappush(self._arrivals, (due, number, batch.seq))

    @property
    def _limited(self) -> bool:
        """Return whether the task limits the users, and not this process's capacity."""
        return self._at_limit is Outcome.DROPPED_MAX_CONCURRENCY

    @property
    def queued(self) -> int:
        return len(self._arrivals)

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
        """Queue again an arrival that a user took and did not start.

        If its batch was taken back by the coordinator meanwhile, notes it for `returned` instead.
        """
        _, iteration, seq = arrival
        with self._changed:
            if self._is_recalled(seq):
                self.give_back([(iteration, iteration + 1)])
            else:
                heapq.heappush(self._arrivals, arrival)

    def _expect(self, due: int, iteration: int, seq: int) -> Arrival | None:
        """Return the arrival that a user has taken if it must start now; else None.

        It is given as due time (monotonic ns), number and batch, and so returned. Before its due
        time it is queued again; more than `max_lag_ns` after it, it is dropped. The due time of an
        arrival to start is noted on the will page before.
        """
        now = monotonic_ns()
        if due > now:
            # an earlier arrival was returned meanwhile, or the sleep was interrupted
            self._keep((due, iteration, seq))
        elif now - due > self._max_lag_ns:
            self._drop(due, iteration, full=False)
        else:
            self._requested = False
            if self._page is not None:
                self._page.take(due - self.t0_ns, seq)
            return due, iteration, seq
        return None

    def _ask(self) -> None:
        """At most once until the next arrival starts."""
        if not self._arrivals and not self._requested:
            self._requested = True
            self._request_work()

    def _drop(self, due: int, iteration: int, *, full: bool) -> None:
        now = monotonic_ns()
        why = self._at_limit if full or due <= self._full_until else Outcome.DROPPED_LATE
        self.rows.append(
            row(iteration=iteration, outcome=int(why), due=due, started=now, ended=now)
        )

    def _drop_late(self, now: int, *, full: bool) -> None:
        """Drop the queued arrivals that are more than `max_lag_ns` late at `now`, monotonic ns.

        Each gets a row with the reason: `at_limit` if `full` (all users are busy now and no more
        can be started) or if all users were busy at some time after its due time; else
        DROPPED_LATE.
        """
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
