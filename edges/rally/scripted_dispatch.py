"""Dispatch for runners whose own code starts iterations: by the number settled lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from osbench.common.plugin.runner import Step
from osbench.common.protocol import timers
from osbench.coordinator.load.dispatch.batches import Batches, Grant
from osbench.coordinator.load.dispatch.closed_load import ClosedLoad
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.results.accounting.ledger import Ledger


class CountedLoad(ClosedLoad):
    """Grants iterations ahead by the number settled lately, instead of by their duration.

    For runners whose own code starts iterations, as durations do not show how many it starts. A
    worker has two per user, and twice the number settled in the last `STOCK_S` seconds.
    """

    def __init__(self, batches: Batches, ledger: Ledger, limit: int | None) -> None:
        super().__init__(batches, ledger, limit)
        #: Instants, seconds after t0, and how many iterations were settled then.
        self._seen: deque[tuple[float, int]] = deque()

    def place(
        self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Grant batches to workers that lack a quarter or more of the iterations to have ahead."""
        recent = self._settled_lately(elapsed_s)
        grants: list[Grant] = []
        for worker in workers:
            ahead = timers.STOCK_PER_USER * worker.user_limit + 2 * recent
            lack = ahead - self._ledger.outstanding(worker.name)
            # small batches cost a message each
            if lack < ahead // 4:
                continue
            while lack > 0:
                size = lack if self._limit is None else min(lack, self._limit)
                numbers = self._ledger.allot(size, step.budget, worker.name)
                if not numbers:
                    break
                lack -= len(numbers)
                grants.append(Grant(worker=worker, numbers=numbers))
        self._batches.grant(grants)

    def _settled_lately(self, elapsed_s: float) -> int:
        """Return how many iterations were settled in the last `STOCK_S` seconds, about.

        `elapsed_s`: seconds after t0. Notes the present number for later calls.
        """
        seen, settled = self._seen, self._ledger.settled
        seen.append((elapsed_s, settled))
        while len(seen) > 1 and seen[1][0] <= elapsed_s - timers.STOCK_S:
            seen.popleft()
        return settled - seen[0][1]


class ScriptedDispatcher(Dispatcher):
    """Dispatcher of a workload whose iterations the runner's own code starts."""

    CLOSED = CountedLoad
