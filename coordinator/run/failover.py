"""A lost worker, from its silence to its replacement: the one module to read on that.

1. `detect`: a worker was silent for long, or sent results that cannot be read. The decision is
   journalled, a fence goes into the result stream, the worker is FENCING.
2. `fence_read`: the receiver has counted all blocks before the fence. What comes later is late
   or stale; the worker is FENCED and has no users.
3. `reclaim`: its batches are taken away, its queue is deleted; the worker is RECLAIMED. What it
   had claimed is suspect: run again where the workload is idempotent, else lost at the end.
4. `replace`: a free worker takes its place, such as the new process that the supervisor of its host
   starts.

`LoadLoop` passes fences on; `WorkloadRun.record_lost` reports the loss and counts its users as
missing; `Ledger.revoked` and `Ledger.claimed` say what becomes of the batches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.fleet.worker import LossReason, WorkerHandle, WorkerState
from osbench.coordinator.run.services import RunServices
from osbench.coordinator.run.workload_workers import WorkloadWorkers

LOG = logging.getLogger(__name__)


class Failover:
    """Drives the state machine of the run's workers beyond LEAVING."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        #: Workers whose fence was sent and not read, by the fence's nonce.
        self._fences: dict[str, WorkerHandle] = {}

    def detect(self, workers: Iterable[WorkerHandle]) -> None:
        """Fence those that have to be declared lost now. Raises StoreAway."""
        for worker in workers:
            reason = worker.due_loss(self._services.limits.lost_after_s)
            if reason is not None:
                self._fence(worker, reason)

    def _fence(self, worker: WorkerHandle, reason: LossReason) -> None:
        name = worker.incarnation
        what = (
            f"was silent for {worker.silence_s:.1f} s"
            if reason is LossReason.SILENT
            else reason.value
        )
        LOG.warning("worker %s %s and is declared lost", name, what)
        self._services.directory.decide([{"do": "fence", "worker": name}])
        self._fences[self._services.channel.fence(name)] = worker
        worker.declare_lost(reason)

    def fence_read(self, nonce: str) -> WorkerHandle | None:
        """The receiver has come to a fence; returns the worker behind it, None if not ours."""
        worker = self._fences.pop(nonce, None)
        if worker is None:
            return None
        worker.fence_read()
        self._services.receiver.fence(worker.incarnation)
        return worker

    def reclaim(self, workload: int, dispatcher: Dispatcher) -> None:
        """Take away what fenced workers of a workload had. Raises StoreAway: call it again."""
        for worker in self._in_state(workload, WorkerState.FENCED):
            dispatcher.reclaim(worker.incarnation)
            self._services.pool.forget(worker.incarnation)
            self._services.controls.change([worker], fenced=True)
            worker.reclaimed()

    def replace(self, workers: WorkloadWorkers) -> None:
        """Take free workers in place of those that are lost or leave. Raises StoreAway."""
        lack = workers.lacking
        if lack <= 0:
            return
        for worker in self._services.pool.adopt(lack):
            LOG.warning("worker %s replaces one that was lost or left", worker.incarnation)
            workers.add(worker)

    def unsettled(self, workload: int) -> bool:
        """A worker of the workload is lost, and what it had is not reclaimed yet."""
        return any(
            self._in_state(workload, state) for state in (WorkerState.FENCING, WorkerState.FENCED)
        )

    def _in_state(self, workload: int, state: WorkerState) -> list[WorkerHandle]:
        workers = self._services.pool.workers.values()
        return [one for one in workers if one.workload == workload and one.state is state]


def loss_sentence(worker: WorkerHandle, silent_from_s: float, elapsed_s: float) -> str:
    """What the report says of a lost worker; both instants in seconds after t0."""
    assert worker.loss_reason is not None
    what = f"worker {worker.beat.host}:{worker.beat.pid} {worker.loss_reason.value}"
    if elapsed_s < 0:
        return f"{what} before the load"
    later_s = elapsed_s - silent_from_s
    return f"{what} {silent_from_s:.0f} s into the load and was declared lost {later_s:.0f} s later"
