"""Placing the arrivals of an open load: dealt to workers some seconds before they are due."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osbench.common.intervals import Intervals
from osbench.common.plugin.runner import Step
from osbench.coordinator.dispatch.arrivals import (
    Dues,
    Ints,
    deal,
    deal_numbers,
    nanoseconds,
    slices,
)
from osbench.coordinator.dispatch.batches import Batches
from osbench.coordinator.dispatch.port import PlannedBatch
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger

#: Arrivals are given out no later than this before they are due, seconds.
AHEAD_S = 13.0


class OpenLoad:
    """The load of an open runner."""

    def __init__(
        self, batches: Batches, ledger: Ledger, *, max_lag_s: float, warmup_ns: int
    ) -> None:
        """Arrivals that move are dropped when later than `max_lag_s`."""
        self._batches = batches
        self._ledger = ledger
        self._max_lag_s = max_lag_s
        self._warmup_ns = warmup_ns
        self._dues = Dues()
        #: Arrivals planned and not yet given out.
        self._coming = np.empty(0, np.int64)
        #: Arrivals planned after the warm-up, and when the first and last of them are due.
        self._arrivals = self._first_due = self._last_due = 0

    @property
    def planned(self) -> int:
        """Arrivals planned."""
        return self._ledger.allotted + len(self._coming)

    @property
    def rate_planned(self) -> float | None:
        """Arrivals a second from the first due instant after the warm-up to the last."""
        if self._arrivals < 2 or self._last_due <= self._first_due:
            return None
        return (self._arrivals - 1) / ((self._last_due - self._first_due) / 1e9)

    def place(
        self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Send workers the arrivals that are due next. Raises StoreAway."""
        self._drop_late(elapsed_s)
        found = self._moved(workers)
        dues = self._take_due(step, elapsed_s, stop_s)
        warm = dues[dues >= self._warmup_ns]
        if len(warm):
            if not self._arrivals:
                self._first_due = int(warm[0])
            self._last_due = int(warm[-1])
            self._arrivals += len(warm)
        for part in slices(dues):
            found.extend(self._deal(part, workers))
        self._batches.send(found)

    def _moved(self, workers: Sequence[WorkerHandle]) -> list[PlannedBatch]:
        """Batches of the arrivals that were taken from another worker."""
        if not workers or not self._ledger.pool:
            return []
        moving = self._ledger.allot(len(self._ledger.pool), 0)
        hands = zip(workers, deal_numbers(moving, len(workers)), strict=True)
        return [self._cut(worker, numbers) for worker, numbers in hands if numbers]

    def _take_due(self, step: Step, elapsed_s: float, stop_s: float | None) -> Ints:
        """The instants of the arrivals that are to be given out now.

        Runners plan a few more with every turn; while they are far ahead they are left to
        become a batch that is worth its message.
        """
        coming = np.concatenate((self._coming, nanoseconds(step.arrivals)))
        if stop_s is not None:
            coming = coming[coming < int(stop_s * 1e9)]
        far = len(coming) and coming[0] > int((elapsed_s + AHEAD_S) * 1e9)
        now, self._coming = (coming[:0], coming) if far else (coming, coming[:0])
        return now

    def _deal(self, dues: Ints, workers: Sequence[WorkerHandle]) -> list[PlannedBatch]:
        first = self._ledger.allotted + 1
        hands = deal(dues, max(1, len(workers)), first)
        # a worker's arrivals of a slice have one run of numbers: the ledger stays small
        self._dues.add(first, np.concatenate(hands))
        found = []
        for at, hand in enumerate(hands):
            if not len(hand):
                continue
            numbers = self._ledger.allot_new(len(hand))
            if workers:
                found.append(self._cut(workers[at], numbers))
            else:
                self._ledger.pool.update(numbers)
        return found

    def _cut(self, worker: WorkerHandle, numbers: Intervals) -> PlannedBatch:
        return self._batches.cut(worker, numbers, self._packed_dues(numbers))

    def _packed_dues(self, numbers: Intervals) -> bytes:
        return self._dues.of(numbers.members()).astype("<i8").tobytes()

    def _drop_late(self, elapsed_s: float) -> None:
        if not self._ledger.pool:
            return
        numbers = self._ledger.pool.members()
        limit = int((elapsed_s - self._max_lag_s) * 1e9)
        late = Intervals.of(numbers[self._dues.of(numbers) < limit])
        if late:
            self._batches.drop(late, self._packed_dues)
