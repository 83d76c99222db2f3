"""The dispatcher of one workload: places its iterations on workers and takes them away again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from osbench.common.plugin.runner import Step
from osbench.coordinator.data_file import DataFile
from osbench.coordinator.dispatch.batches import Batches
from osbench.coordinator.dispatch.closed_load import ClosedLoad
from osbench.coordinator.dispatch.open_load import OpenLoad
from osbench.coordinator.dispatch.port import DispatchPort
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger

LOG = logging.getLogger(__name__)

#: A worker that has been idle for this long, with batches on their way to it, did not get them.
IDLE_S = 3.0


class Dispatcher:
    """Which iterations of a workload go where, and when."""

    def __init__(
        self,
        port: DispatchPort,
        ledger: Ledger,
        workload: int,
        *,
        is_open: bool,
        max_lag_s: float,
        data: DataFile | None = None,
        warmup_ns: int = 0,
    ) -> None:
        """Arrivals of an open load that move are dropped when later than `max_lag_s`."""
        self._ledger = ledger
        rows = {"rows_of": data.sealed} if data is not None else {}
        self._batches = Batches(port, ledger, workload, **rows)
        self._load: OpenLoad | ClosedLoad
        if is_open:
            self._load = OpenLoad(self._batches, ledger, max_lag_s=max_lag_s, warmup_ns=warmup_ns)
        else:
            limit = data.batch_limit if data is not None else None
            self._load = ClosedLoad(self._batches, ledger, limit)

    @property
    def planned(self) -> int:
        """Numbers given out (closed) or arrivals planned (open)."""
        return self._load.planned

    @property
    def rate_planned(self) -> float | None:
        """Arrivals a second that were planned; None for a closed load."""
        return self._load.rate_planned

    @property
    def unconfirmed(self) -> bool:
        """It is not known of some batches whether they were sent."""
        return self._batches.unconfirmed

    def has_work(self, step: Step) -> bool:
        """There is work that could be placed."""
        return self._ledger.available(step.budget) != 0

    def place(
        self, step: Step, workers: Iterable[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Give workers what they should have now. Raises StoreAway."""
        self._batches.revoke_unconfirmed()
        with_users = [worker for worker in workers if worker.share]
        self._load.place(step, with_users, elapsed_s, stop_s)

    # taking away; all raise StoreAway, and can be repeated then

    def reclaim(self, incarnation: str) -> None:
        """Take away all open batches of a worker that was fenced."""
        self._batches.revoke(self._ledger.batches_of(incarnation))

    def rescue(self, workers: Sequence[WorkerHandle]) -> None:
        """Take back what an idle worker was sent: the message never reached it."""
        for worker in workers:
            if worker.idle_s < IDLE_S:
                continue
            undelivered = self._ledger.open_batches(worker.incarnation)
            if undelivered:
                LOG.warning("batches %s did not reach worker %s", undelivered, worker.incarnation)
                self._batches.revoke(undelivered)
                worker.idle_s = 0.0

    def take_back_unclaimed(self, workers: Sequence[WorkerHandle]) -> None:
        """The load is over: what was not claimed will not start."""
        self._batches.revoke_unconfirmed()
        for worker in workers:
            self._batches.revoke_open(worker.incarnation)

    def drain_leaving(self, workers: Sequence[WorkerHandle]) -> None:
        """What workers that leave have not claimed goes to others."""
        for worker in workers:
            if worker.leaving:
                self._batches.revoke_open(worker.incarnation)
