"""Placing the iterations of a closed load: each worker has about two seconds of work."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.plugin.runner import Step
from osbench.coordinator.dispatch import batch_sizes
from osbench.coordinator.dispatch.batches import Batches, Grant
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger


class ClosedLoad:
    """The load of a closed runner."""

    def __init__(self, batches: Batches, ledger: Ledger, limit: int | None) -> None:
        """`limit` is the most iterations of a batch that carries rows of a data file."""
        self._batches = batches
        self._ledger = ledger
        self._limit = limit

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
        self._level(step, workers)
        self._batches.grant(self._grants(step, workers))

    def _grants(self, step: Step, workers: Sequence[WorkerHandle]) -> list[Grant]:
        found: list[Grant] = []
        held = {worker: self._ledger.outstanding(worker.name) for worker in workers}
        takers = list(workers)
        # one batch each in turn: no worker may take all that is left
        while takers:
            for worker in list(takers):
                left = self._ledger.available(step.budget)
                size = batch_sizes.batch_size(worker, left, len(workers), self._limit)
                room = worker.room() - held[worker]
                # small batches cost a message each, and are of use only where work runs out
                small = room < min(size, worker.room() // 2) and held[worker] > worker.share
                if left == 0 or room <= 0 or small:
                    takers.remove(worker)
                    continue
                numbers = self._ledger.allot(min(size, room), step.budget, worker.name)
                if not numbers:
                    # all that is left is what it may have started itself
                    takers.remove(worker)
                    continue
                held[worker] += len(numbers)
                found.append(Grant(worker=worker, numbers=numbers))
        return found

    def _level(self, step: Step, workers: Sequence[WorkerHandle]) -> None:
        """At the end of the plan, move what is not started to workers that are idle."""
        if self._ledger.available(step.budget) != 0 or len(workers) < 2:
            return
        stock = {worker: self._ledger.outstanding(worker.name) for worker in workers}
        if not any(held < worker.share for worker, held in stock.items()):
            return
        fullest = max(stock, key=lambda one: stock[one] - one.share)
        # what it says itself: of the rest it has nothing to give back
        if stock[fullest] <= fullest.share or not fullest.beat.queued:
            return
        open_batches = self._ledger.open_batches(fullest.name)
        self._batches.recall(fullest, open_batches[: max(1, len(open_batches) // 2)])
