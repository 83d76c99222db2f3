"""Placing the iterations of a closed load: each worker has about two seconds of work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from osbench.common.plugin.runner import Step
from osbench.coordinator.dispatch import batch_sizes
from osbench.coordinator.dispatch.batches import Batches
from osbench.coordinator.dispatch.port import PlannedBatch
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger


class ClosedLoad:
    """The load of a closed runner."""

    def __init__(self, batches: Batches, ledger: Ledger, limit: int | None) -> None:
        """`limit` is the most iterations of a batch that carries rows of a data file."""
        self._batches = batches
        self._ledger = ledger
        self._limit = limit
        #: Workers whose first batches were compared with their speed.
        self._sized: set[str] = set()

    @property
    def planned(self) -> int:
        """Iteration numbers given out."""
        return self._ledger.allotted

    @property
    def rate_planned(self) -> float | None:
        """None: a closed load has no arrival rate."""
        return None

    def place(
        self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Send workers what they lack. Raises StoreAway."""
        self._take_back_large(workers)
        self._level(step, workers)
        self._batches.send([*self._first(step, workers), *self._further(step, workers)])

    def _further(self, step: Step, workers: Sequence[WorkerHandle]) -> list[PlannedBatch]:
        found: list[PlannedBatch] = []
        known = [worker for worker in workers if worker.rate]
        held = {worker: self._ledger.outstanding(worker.incarnation) for worker in known}
        # one batch each in turn: no worker may take all that is left
        while known:
            for worker in list(known):
                left = self._ledger.available(step.budget)
                size = batch_sizes.batch_size(worker, left, len(workers), self._limit)
                room = batch_sizes.room(worker, held[worker])
                if left == 0 or room <= 0 or (room < size and held[worker] > worker.share):
                    known.remove(worker)
                    continue
                numbers = self._ledger.allot(size, step.budget)
                held[worker] += len(numbers)
                found.append(self._batches.cut(worker, numbers))
        return found

    def _first(self, step: Step, workers: Sequence[WorkerHandle]) -> list[PlannedBatch]:
        """Batches of workers whose speed is not known."""
        users = sum(worker.share for worker in workers) or 1
        plan = self._ledger.available(step.budget)
        sizes = []
        for worker in workers:
            if worker.rate or self._ledger.outstanding(worker.incarnation):
                continue
            fair = None if plan is None else math.ceil(plan * worker.share / users)
            sizes.append(
                [
                    (worker, size)
                    for size in batch_sizes.blind_sizes(worker.share, fair, self._limit)
                ]
            )
        found: list[PlannedBatch] = []
        # small ones of all workers first: the numbers that start are then without large gaps
        for worker, size in (one for turn in zip_longest(*sizes) for one in turn if one):
            numbers = self._ledger.allot(size, step.budget)
            if numbers:
                found.append(self._batches.cut(worker, numbers))
        return found

    def _take_back_large(self, workers: Sequence[WorkerHandle]) -> None:
        """Once a worker's speed is known, take back first batches that are too large for it."""
        for worker in workers:
            if not worker.rate or worker.incarnation in self._sized:
                continue
            self._sized.add(worker.incarnation)
            limit = batch_sizes.too_large(worker)
            large = [
                number
                for number in self._ledger.open_batches(worker.incarnation)
                if len(self._ledger.batches[number].numbers) > limit
            ]
            self._batches.revoke(large)

    def _level(self, step: Step, workers: Sequence[WorkerHandle]) -> None:
        """At the end of the plan, move what no worker has claimed to workers that are idle."""
        if self._ledger.available(step.budget) != 0:
            return
        stock = {worker: self._ledger.outstanding(worker.incarnation) for worker in workers}
        idle = [worker for worker, held in stock.items() if held < worker.share]
        if not idle or len(stock) < 2:
            return
        for worker in sorted(stock, key=lambda one: stock[one], reverse=True):
            if stock[worker] <= worker.share:
                return
            open_batches = self._ledger.open_batches(worker.incarnation)
            if open_batches:
                self._batches.revoke(open_batches[: max(1, len(open_batches) // 2)])
                return
