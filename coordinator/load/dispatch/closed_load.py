"""Decides which worker of a closed load gets iterations, so that each has two seconds of work.

A batch is about a second of work and a worker has about two. Before the first results it is not
known how many iterations that is: batches double, so that the excess can be recalled. Near the end
batches shrink, so that no worker is left alone with a tail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from osbench.common.plugin.runner import Step
from osbench.common.protocol import timers
from osbench.coordinator.load.dispatch.batches import Batches, Grant
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.results.accounting.ledger import Ledger

#: A batch of work, seconds.
BATCH_S = 1.0
#: Shortest batch near the end, seconds.
SHORTEST_S = 0.1
#: A worker gets a batch of any size if it has less work than this, in seconds, not counting running
#: iterations and its round trips: with long iterations of many users, more than half of its
#: iterations run.
RESERVE_S = 0.25


def blind_sizes(users: int, total: int, limit: int | None = None) -> list[int]:
    """Return the sizes of the first batches of a worker whose speed is not known yet.

    They sum to `total`. The first two have an iteration per user (`users` >= 1), others double.
    `limit` is the most iterations of a batch that carries rows of a data file; None: no limit.
    """
    largest = total if limit is None else min(total, limit)
    sizes: list[int] = []
    size = min(users, largest)
    while total > 0:
        sizes.append(min(size, total))
        total -= size
        if len(sizes) > 1:
            size = min(2 * size, largest)
    return sizes


def batch_size(
    worker: WorkerHandle, left: int | None, workers: int, limit: int | None = None
) -> int:
    """Return the size of the next batch for a worker that has had its first batches.

    About `BATCH_S` seconds of its work, less near the end of the plan; an iteration per user if its
    speed is not known. It may exceed `left`, the iterations of the plan not granted yet (None:
    without end). `workers`: number of workers; `limit`: most iterations of a batch that carries
    rows of a data file, None for no limit.
    """
    if not worker.rate:
        size = worker.user_limit
    else:
        size = max(int(worker.rate * BATCH_S), -(-worker.user_limit // 16), 1)
        if left is not None:
            # a worker takes a batch a round trip
            shortest = max(1, int(worker.rate * (SHORTEST_S + worker.trip_s)))
            size = min(size, max(shortest, -(-left // (2 * workers))))
    return size if limit is None else min(size, limit)


class ClosedLoad:
    """Grants the iterations of a closed load to workers, so that no virtual user has to wait.

    A worker has about two seconds of work ahead.
    """

    def __init__(self, batches: Batches, ledger: Ledger, limit: int | None) -> None:
        """`limit` is the most iterations of a batch that carries rows of a data file; None: any."""
        self._batches = batches
        self._ledger = ledger
        self._limit = limit

    @property
    def planned(self) -> int:
        """Return the number of iterations granted at least once so far."""
        return self._ledger.allotted

    @property
    def rate_planned(self) -> float | None:
        """Return None: a closed load has no arrival rate."""
        return None

    def place(
        self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Grant batches to workers with too little work; recall batches of workers with too much.

        `elapsed_s`: seconds after t0; `stop_s` is ignored. Raises errors of `Batches.grant`.
        """
        self._bound(workers, elapsed_s)
        self._level(step, workers)
        self._batches.grant([*self._first(step, workers, elapsed_s), *self._further(step, workers)])

    def _bound(self, workers: Sequence[WorkerHandle], elapsed_s: float) -> None:
        """Recall the newest batches of workers that have more than twice the work due to them.

        A worker without a result is left out for `BLIND_S` seconds after its first batches, then
        `slow` is called. Workers without queued iterations are left out.
        """
        for worker in workers:
            if worker.blind_s is not None and worker.stock is None:
                if elapsed_s - worker.blind_s < timers.BLIND_S + worker.trips_s:
                    continue
                worker.slow()
            excess = self._ledger.outstanding(worker.name) - worker.room()
            if excess <= worker.room() or not worker.beat.queued:
                continue
            large = []
            for seq in self._ledger.open_batches(worker.name):
                excess -= len(self._ledger.batch(worker.name, seq))
                if excess < 0:
                    break
                large.append(seq)
            self._batches.recall(worker, large)

    def _first(self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float) -> list[Grant]:
        """Return grants of the first batches of workers, whose speed is not known yet.

        Each worker gets them once, in proportion to its users if the plan has an end. Takes their
        numbers from the ledger, and notes the time in `blind_s`.
        """
        users = sum(worker.user_limit for worker in workers)
        plan = self._ledger.available(step.budget)
        sizes = []
        for worker in workers:
            if worker.stock is not None or worker.blind_s is not None:
                continue
            total = worker.room() - self._ledger.outstanding(worker.name)
            if plan is not None:
                total = min(total, math.ceil(plan * worker.user_limit / users))
            if total <= 0:
                continue
            worker.blind_s = max(0.0, elapsed_s)
            each = blind_sizes(worker.user_limit, total, self._limit)
            sizes.append([(worker, size) for size in each])
        found: list[Grant] = []
        # small ones of all workers first: the numbers that start are then without large gaps
        for worker, size in (one for turn in zip_longest(*sizes) for one in turn if one):
            numbers = self._ledger.allot(size, step.budget, worker.name)
            if numbers:
                found.append(Grant(worker=worker, numbers=numbers))
        return found

    def _further(self, step: Step, workers: Sequence[WorkerHandle]) -> list[Grant]:
        found: list[Grant] = []
        takers = [worker for worker in workers if worker.stock is not None]
        held = {worker: self._ledger.outstanding(worker.name) for worker in workers}
        most = self._fair(step, held)
        # one batch each in turn: no worker may take the whole rest
        while takers:
            for worker in list(takers):
                left = self._ledger.available(step.budget)
                size = batch_size(worker, left, len(workers), self._limit)
                room = min(worker.room(), most.get(worker, worker.room())) - held[worker]
                # small batches cost a message each, and are of use only if work runs out
                waiting = held[worker] - worker.user_limit
                runs_out = waiting <= (worker.rate or 0.0) * (RESERVE_S + worker.trips_s)
                small = room < min(size, worker.room() // 2) and not runs_out
                if left == 0 or room <= 0 or small:
                    takers.remove(worker)
                    continue
                numbers = self._ledger.allot(min(size, room), step.budget, worker.name)
                if not numbers:
                    # it may have started all remaining numbers itself
                    takers.remove(worker)
                    continue
                held[worker] += len(numbers)
                found.append(Grant(worker=worker, numbers=numbers))
        return found

    def _fair(self, step: Step, held: Mapping[WorkerHandle, int]) -> dict[WorkerHandle, int]:
        """Return each worker's fair part of the iterations that are not granted or are `held`.

        Without this limit some workers would have no work near the end. Empty if the plan has no
        end.
        """
        left = self._ledger.available(step.budget)
        if left is None:
            return {}
        users = sum(worker.user_limit for worker in held)
        rest = left + sum(held.values())
        return {worker: math.ceil(rest * worker.user_limit / users) for worker in held}

    def _level(self, step: Step, workers: Sequence[WorkerHandle]) -> None:
        """Recall the newer half of the batches of the fullest worker if another has idle users.

        Only once all iterations of the plan are granted. The numbers it gives back go to workers
        with idle users. No effect with one worker, or if the fullest has no queued iterations.
        """
        if self._ledger.available(step.budget) != 0 or len(workers) < 2:
            return
        stock = {worker: self._ledger.outstanding(worker.name) for worker in workers}
        if not any(held < worker.user_limit for worker, held in stock.items()):
            return
        fullest = max(stock, key=lambda one: stock[one] - one.user_limit)
        # by its own heartbeat: of the rest it has nothing to give back
        if stock[fullest] <= fullest.user_limit or not fullest.beat.queued:
            return
        open_batches = self._ledger.open_batches(fullest.name)
        self._batches.recall(fullest, open_batches[: max(1, len(open_batches) // 2)])
