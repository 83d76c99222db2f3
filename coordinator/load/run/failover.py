"""Detection and replacement of lost workers: the one module to read on that.

1. `detect`: a worker was silent for so long that its lease is over. The loss is journalled; its
   virtual users move to others. Its iterations do not: it may have started them. If the workload
   is idempotent, they are granted to others as well.
2. A lost worker that sends heartbeats again goes on: nothing has to be undone.
3. A worker whose blocks are all on disk, the final one too, has left: the iterations that it had
   not started came back with them. The will of a dead process says the same (`Receiver.receive`).
4. `replace`: a free worker takes its place, such as the new process that the supervisor of its host
   starts.
5. `enlist`: a run that takes more workers under load gives new ones to the workloads that can use
   them (ADR 56). Virtual users and arrivals move to them by the usual grants.

`run_history.py` makes messages, marks and missing users of the records that are written here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from osbench.coordinator.load.fleet.worker import WorkerHandle, WorkerState
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.workload_workers import WorkloadWorkers

LOG = logging.getLogger(__name__)


class Failover:
    """Declares workers of a run lost, takes them back if they return, and replaces them."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        #: Workers up to which new ones join under load; 0 if none do.
        self.most_workers = 0

    def detect(self) -> None:
        """Update the states of workers from their heartbeats: lost, found again, or left.

        A worker is lost after `lost_after_s` seconds without a sign of life, and has left once all
        its blocks are on disk. Losses and returns are journalled. Raises StorageError.
        """
        for worker in self._services.pool.workers.values():
            if worker.state is WorkerState.LEFT:
                continue
            if worker.membership.whole:
                worker.mark_left()
            elif worker.present and worker.silence_s >= self._services.limits.lost_after_s:
                self._declare_lost(worker)
            elif worker.state is WorkerState.LOST and not worker.silence_s and worker.session:
                LOG.warning("worker %s is heard again and continues", worker.name)
                at_s = self._services.load_clock.elapsed_s(worker.workload)
                self._services.port.decide([{"do": "heard", "mid": worker.mid, "at_s": at_s}])
                worker.found()

    def _declare_lost(self, worker: WorkerHandle) -> None:
        lost: dict[str, Any] = {"do": "lost", "mid": worker.mid}
        # no loss is reported of a worker that had announced that it leaves
        if not worker.gone:
            LOG.warning(
                "worker %s was silent for %.1f s and is declared lost",
                worker.name,
                worker.silence_s,
            )
            silence = {"silent_s": worker.silence_s, "users": worker.user_limit}
            lost.update(self._described(worker, worker.workload), **silence)
        self._services.port.decide([lost, {"do": "again", "mid": worker.mid}])
        worker.declare_lost()

    def _described(self, worker: WorkerHandle, workload: int) -> dict[str, Any]:
        """Return fields of a journal record on a worker: `workload`, `at_s`, host, pid, label.

        `at_s`: seconds after t0 of the workload.
        """
        at_s, beat = self._services.load_clock.elapsed_s(workload), worker.beat
        known = {"host": beat.host, "pid": beat.pid, "label": beat.label}
        return {"workload": workload, "at_s": at_s, **known}

    def replace(self, workers: WorkloadWorkers) -> None:
        """Assign idle workers of the run to a workload that lacks some; log and journal each.

        `workers` are the workload's; each new one is notified to prepare. Assigns as many as are
        lacking and idle, perhaps none. Raises StoreUnreachable, StorageError.
        """
        for worker in self._services.pool.idle[: max(0, workers.lacking)]:
            LOG.warning("worker %s replaces a worker that was lost or left", worker.name)
            self._add(worker, workers)

    def enlist(self, loads: Mapping[WorkloadWorkers, int]) -> None:
        """Assign new workers of the run to workloads under load; log and journal each.

        `loads`: the most workers that each can use; the one with the fewest comes first. Does
        nothing while one lacks workers. Raises StoreUnreachable, StorageError.
        """
        if any(workers.lacking > 0 for workers in loads):
            return
        for worker in self._services.pool.newcomers:
            if able := [one for one, most in loads.items() if one.count < most]:
                LOG.info("worker %s joins the load", worker.name)
                self._add(worker, min(able, key=lambda one: one.count), more=True)

    def _add(self, worker: WorkerHandle, workers: WorkloadWorkers, **more: bool) -> None:
        described = self._described(worker, workers.workload)
        self._services.port.decide([{"do": "joined", "mid": worker.mid, **described, **more}])
        workers.add(worker)

    def invite(self, loads: Mapping[WorkloadWorkers, int]) -> None:
        """Invite free workers to the run: as many as workloads lack, or as may join them.

        `loads`: the most workers that each can use. Waits for none. Raises StoreUnreachable.
        """
        pool = self._services.pool
        lacking = sum(max(0, workers.lacking) for workers in loads) - len(pool.idle)
        room = self.most_workers - len(pool.staying)
        useful = sum(max(0, most - workers.count) for workers, most in loads.items())
        pool.invite(max(0, lacking, min(room, useful - len(pool.newcomers))))
