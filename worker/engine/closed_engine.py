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
from osbench.worker.engine.engine import GIVEN_UP, LEASE_OVER, NEVER, NOT_STARTED, Engine, User
from osbench.worker.engine.will_page import WillPage

#: Numbers are noted on the will page in portions of this much work, nanoseconds, and of at most
#: this many numbers: so the users themselves need not note each.
PORTION_NS = 5_000_000
PORTION_MOST = 8192


class ClosedEngine(Engine):
    """Runs granted numbers on `share` users. A number is due when its user became free."""

    def __init__(
        self,
        body: Body,
        t0_ns: int,
        stop_ns: int,
        request_work: Callable[[], None],
        page: WillPage | None = None,
    ) -> None:
        #: Batch, and half-open interval of its numbers.
        self._stock: deque[tuple[int, int, int]] = deque()
        # one iterator is shared by all users: next() on a range iterator is atomic
        self._source: Iterator[int] = iter(range(0))
        #: The batch that it is of.
        self._source_seq = 0
        #: Last refill of the source where there is a page, and its size.
        self._refilled_ns = 0
        self._size = 1
        super().__init__(body, t0_ns, stop_ns, request_work, page)

    def add(self, batch: Batch) -> None:
        with self._changed:
            self.added += len(batch)
            self._last_seq = max(self._last_seq, batch.seq)
            self._stock.extend((batch.seq, low, high) for low, high in batch.intervals)
            self._changed.notify_all()

    @property
    def queued(self) -> int:
        waiting = sum(high - low for _, low, high in self._stock.copy())
        return waiting + operator.length_hint(self._source)

    def take_back(self, seq: int | None = None) -> list[Interval]:
        with self._changed:
            self._recall(seq)
            rest = Intervals((low, high) for own, low, high in self._stock if seq in (None, own))
            self._stock = deque(part for part in self._stock if seq not in (None, part[0]))
            if seq in (None, self._source_seq):
                # in one step of the interpreter: no user can take a number in between
                left = list(self._source)
                if left:
                    rest.add(left[0], left[-1] + 1)
            return list(rest)

    def serve(self, user: User) -> None:
        wait_s = (self.t0_ns - monotonic_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        due, seq = user.free_ns, 0
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
                if ended == LEASE_OVER:
                    self._keep(seq, iteration)
            found = self._more(user, due)
            if found is None:
                return
            source, seq, due = found

    def _keep(self, seq: int, iteration: int) -> None:
        """Put a number that was not started in front of the stock."""
        with self._changed:
            if self._is_recalled(seq):
                self.give_back([(iteration, iteration + 1)])
            else:
                self._stock.appendleft((seq, iteration, iteration + 1))
                # its user may be outside the share by now, and the others wait
                self._changed.notify_all()

    def _more(self, user: User, due: int) -> tuple[Iterator[int], int, int] | None:
        """Wait until the user may start an iteration; None if the user must end.

        Returns a source of numbers, the batch that they are of, and the instant from which the
        user was free: `due`, or later if the user was outside the share.
        """
        begin = monotonic_ns()
        parked = waited = False
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
                    if now < self.lease_ns:
                        if self._refill():
                            if waited:
                                self.want_ns += max(0, monotonic_ns() - begin)
                            return self._source, self._source_seq, due
                        self._request_work()
                elif until_stop:
                    until_stop = False
                    if not parked:
                        self.want_ns += max(0, self.stop_ns - begin)
                        self._request_work()
                waited = True
                self._changed.wait(self._left_s(now) if until_stop else None)
        return None

    def _left_s(self, now: int) -> float:
        """Seconds to the stop instant, at most the system's longest wait."""
        return min(max(0, self.stop_ns - now) / 1e9, threading.TIMEOUT_MAX)

    def _refill(self) -> bool:
        """Refill the source that all users share; False where no number is granted."""
        if operator.length_hint(self._source):
            return True
        if not self._stock:
            return False
        seq, low, high = self._stock[0]
        end = high
        if self._page is not None:
            end = min(high, low + self._portion())
            self._page.reach(seq, end - 1)
        if end < high:
            self._stock[0] = (seq, end, high)
        else:
            self._stock.popleft()
        self._source, self._source_seq = iter(range(low, end)), seq
        if not self._stock:
            self._request_work()
        return True

    def _portion(self) -> int:
        """How many numbers to put into the source: as many as users take in `PORTION_NS`.

        A process that is killed counts as having started all of them.
        """
        now = monotonic_ns()
        elapsed, self._refilled_ns = max(1, now - self._refilled_ns), now
        size = min(2 * self._size, self._size * PORTION_NS // elapsed, PORTION_MOST)
        self._size = max(1, size)
        return self._size
