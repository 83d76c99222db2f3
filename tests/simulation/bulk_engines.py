"""Engines that run no scenario: their iterations are made in bulk by a thread they share."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from time import monotonic_ns
from typing import Any

import numpy as np

from osbench.common.protocol.columns import pack_actions
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.engine import Engine, EngineSetup, User

#: Between two looks of the ticker at all engines, seconds.
TICK_S = 0.05
#: What an iteration takes, nanoseconds; there are a thousand different ones.
SERVICE_NS = 10_000_000
SPREAD_NS = 5_000_000
#: The only atomic action of an iteration.
ACTION = "work"


class BulkEngine(Engine):
    """Base of the two: no threads, no users, rows with one atomic action each."""

    def __init__(self, setup: EngineSetup) -> None:
        self._action = setup.body.names.number(ACTION)
        self._times = np.random.default_rng(1).integers(
            SERVICE_NS - SPREAD_NS, SERVICE_NS + SPREAD_NS, 1000
        )
        super().__init__(setup)
        TICKER.add(self)

    def work(self, now: int) -> None:
        """Do what the iterations up to an instant would have done."""
        raise NotImplementedError

    @property
    def users(self) -> int:
        return 0

    def _put(self, numbers: Sequence[int], started: Sequence[int]) -> None:
        """Add the rows of iterations that started in time; all have the same packed action."""
        count = len(numbers)
        first = int(np.random.default_rng(numbers[0]).integers(len(self._times)))
        took = np.take(self._times, range(first, first + count), mode="wrap")
        ended = (np.asarray(started) + took).tolist()
        packed = pack_actions([self._action, -1, started[0], started[0] + SERVICE_NS, 0])
        # each column as long as the others
        same = (repeat(value, count) for value in (0, 0, packed, None))
        outcomes = repeat(int(Outcome.OK), count)
        self.rows += zip(numbers, outcomes, started, started, ended, *same, strict=True)

    # what engines with users need

    def _fill(self) -> None:
        pass

    def _notify(self) -> None:
        pass

    def _running_here(self) -> int:
        return 0

    def _stack(self, user: User, frames: Any) -> Any:
        return ()

    def _replace(self, user: User, now: int) -> None:
        pass

    def _watch_loop(self) -> None:
        # the ticker looks
        pass


class BulkArrivals(BulkEngine):
    """Open load: every arrival starts when it is due."""

    def __init__(self, setup: EngineSetup) -> None:
        #: Of batches, in the order of their first instants: number of the batch, instants, numbers.
        self._waiting: list[tuple[int, Any, Any]] = []
        super().__init__(setup)

    def add(self, batch: Batch) -> None:
        dues = np.frombuffer(batch.dues, "<i8") + self.t0_ns
        with self._changed:
            self.added += len(batch)
            self._last_seq = max(self._last_seq, batch.seq)
            self._waiting.append((batch.seq, dues, Intervals(batch.intervals).members()))

    @property
    def queued(self) -> int:
        return sum(len(dues) for _, dues, _ in self._waiting.copy())

    def take_back(self, seq: int | None = None) -> list[Interval]:
        with self._changed:
            self._recall(seq)
            back = [one for one in self._waiting if seq in (None, one[0])]
            self._waiting = [one for one in self._waiting if seq not in (None, one[0])]
        numbers = np.concatenate([np.empty(0, np.int64), *(one[2] for one in back)])
        return list(Intervals.of(np.sort(numbers)))

    def work(self, now: int) -> None:
        with self._changed:
            until, rest = min(now, self.until_ns), []
            for seq, dues, numbers in self._waiting:
                count = int(np.searchsorted(dues, until))
                if count:
                    self._put(numbers[:count].tolist(), dues[:count].tolist())
                if count < len(dues):
                    rest.append((seq, dues[count:], numbers[count:]))
            self._waiting = rest


class BulkUsers(BulkEngine):
    """Closed load: users that are never idle as long as there is work."""

    def __init__(self, setup: EngineSetup) -> None:
        #: Number of the batch, and a half-open interval of its numbers.
        self._stock: deque[tuple[int, int, int]] = deque()
        self._worked_ns = setup.t0_ns
        self._part = 0.0
        super().__init__(setup)

    def add(self, batch: Batch) -> None:
        with self._changed:
            self.added += len(batch)
            self._last_seq = max(self._last_seq, batch.seq)
            self._stock.extend((batch.seq, low, high) for low, high in batch.intervals)

    @property
    def queued(self) -> int:
        return sum(high - low for _, low, high in self._stock.copy())

    def take_back(self, seq: int | None = None) -> list[Interval]:
        with self._changed:
            self._recall(seq)
            rest = Intervals((low, high) for own, low, high in self._stock if seq in (None, own))
            self._stock = deque(one for one in self._stock if seq not in (None, one[0]))
        return list(rest)

    def work(self, now: int) -> None:
        until = min(now, self.until_ns)
        if until <= self._worked_ns:
            return
        with self._changed:
            begun, self._worked_ns = self._worked_ns, until
            self._part += self.user_limit * (until - begun) / SERVICE_NS
            while self._part >= 1 and self._stock:
                seq, low, high = self._stock.popleft()
                end = min(high, low + int(self._part))
                if end < high:
                    self._stock.appendleft((seq, end, high))
                self._part -= end - low
                started = np.linspace(begun, until, end - low, endpoint=False).astype(np.int64)
                self._put(range(low, end), started.tolist())
            if not self._stock:
                # who has no work cannot make up for it
                self._part = min(self._part, 1.0)
        if self.queued < self.user_limit:
            self._request_work()


class Ticker:
    """The thread that lets all engines of a process work."""

    def __init__(self) -> None:
        self._engines: list[BulkEngine] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, engine: BulkEngine) -> None:
        """Look after an engine until it is over."""
        with self._lock:
            self._engines.append(engine)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="ticker", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                self._engines = [one for one in self._engines if not one.stopped]
                engines = list(self._engines)
            for engine in engines:
                now = monotonic_ns()
                if now > engine.t0_ns:
                    engine.work(now)
                    engine._check()


TICKER = Ticker()
