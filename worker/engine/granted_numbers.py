"""Closed load: granted numbers, which users take one after another when they become free."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator
from typing import Any

from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Interval, Intervals
from osbench.worker.engine.engine import NEVER, Engine, EngineSetup, User

#: Numbers are noted on the will page in portions of this much work, nanoseconds, and of at most
#: this many numbers: so the users themselves need not note each.
PORTION_NS = 5_000_000
PORTION_MOST = 8192

#: A source of numbers, the batch that they are of, and the time from which the user was free.
Found = tuple[Iterator[int], int, int]


class Wait:
    """The wait of a virtual user for an iteration that it may start: its begin and state.

    Times are monotonic ns.
    """

    __slots__ = ("begin", "due", "parked", "until_stop", "waited")

    def __init__(self, due: int, stop_ns: int) -> None:
        self.begin = monotonic_ns()
        #: Time from which the user was free; later if it was outside the user limit.
        self.due = due
        #: The user is outside the user limit.
        self.parked = False
        self.waited = False
        #: With a stop time, the wait until then counts as waiting for work.
        self.until_stop = stop_ns < NEVER


class GrantedNumbers(Engine):
    """Base of the engines of closed load: a free user takes a granted number.

    It has `user_limit` users. A number is due when its user became free, or at a later turn of
    `Pacing`, which limits the rate.
    """

    #: By position.
    _users: dict[int, Any]

    def __init__(self, setup: EngineSetup) -> None:
        #: Batch, and half-open interval of its numbers.
        self._stock: deque[tuple[int, int, int]] = deque()
        # one iterator is shared by all users: next() on a range iterator is atomic
        self._source: Iterator[int] = iter(range(0))
        #: The batch that it is of.
        self._source_seq = 0
        #: Time of the last refill of the source, if there is a page; size of the refill.
        self._refilled_ns = 0
        self._size = 1
        super().__init__(setup)

    def add(self, batch: Batch) -> None:
        with self._changed:
            self.added += len(batch)
            self._last_seq = max(self._last_seq, batch.seq)
            self._stock.extend((batch.seq, low, high) for low, high in batch.intervals)
            self._notify_of_work(len(batch))

    def _notify_of_work(self, count: int) -> None:
        """Wake users for `count` queued numbers; here all users. Called with the lock held."""
        self._notify()

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

    @property
    def surplus(self) -> int:
        """Also counts users beyond `places`, until they have ended."""
        return super().surplus + sum(number >= self.places for number in list(self._users))

    def _keep(self, seq: int, iteration: int) -> None:
        """Queue the unstarted number `iteration` of batch `seq` again, first; wake users for it.

        If the batch was taken back by the coordinator, notes the number for `returned` instead.
        """
        with self._changed:
            if self._is_recalled(seq):
                self.give_back([(iteration, iteration + 1)])
            else:
                self._stock.appendleft((seq, iteration, iteration + 1))
                # its user may be outside the user limit by now, and the others wait
                self._notify_of_work(1)

    def _offer(self, user: User, wait: Wait) -> Found | None:
        """Return the shared iterator from which a waiting user takes a number; None to wait on.

        With it come its batch, and the time from which the user is free, monotonic ns. It must wait
        if it is beyond the user limit, no number is queued, or the lease (permission to start) or
        the load is over. May request work. Notes the state of the wait in `wait`; at its end adds
        the time waited within the user limit to `want_ns`. Call with the lock held.
        """
        now = monotonic_ns()
        if user.number >= self.user_limit:
            wait.parked = True
            # after the stop time it would wait for no time, again and again
            wait.until_stop = wait.until_stop and now < self.stop_ns
        elif now < self.stop_ns:
            if wait.parked:
                wait.parked = False
                wait.begin = wait.due = self._limited_ns
            if now < self.lease_ns:
                if self._refill():
                    if wait.waited:
                        self.want_ns += max(0, monotonic_ns() - wait.begin)
                    return self._source, self._source_seq, wait.due
                self._request_work()
        elif wait.until_stop:
            wait.until_stop = False
            if not wait.parked:
                self.want_ns += max(0, self.stop_ns - wait.begin)
                self._request_work()
        wait.waited = True
        return None

    def _left_s(self) -> float:
        """Return the seconds until the stop time, from 0 to the longest timeout of a lock."""
        return min(max(0, self.stop_ns - monotonic_ns()) / 1e9, threading.TIMEOUT_MAX)

    def _refill(self) -> bool:
        """If the iterator shared by all users is empty, fill it with the next queued numbers.

        Returns False if it is empty and no number is queued. Notes the numbers on the will page, if
        there is one, before users can take them. Requests work if it takes the last queued numbers.
        """
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
        """Return how many numbers to move into the shared iterator: for `PORTION_NS` of work.

        Estimated from the time since the last call. At least 1, at most `PORTION_MOST`, and at most
        twice the last result. If the process is killed, all of them count as started.
        """
        now = monotonic_ns()
        elapsed, self._refilled_ns = max(1, now - self._refilled_ns), now
        size = min(2 * self._size, self._size * PORTION_NS // elapsed, PORTION_MOST)
        self._size = max(1, size)
        return self._size
