"""The loop under load: reads results and heartbeats, and gives each workload its turn."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from osbench.common.errors import FleetError, StoreAway, StoreLost
from osbench.coordinator.run.failover import Failover
from osbench.coordinator.run.services import RunServices
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.workload import LEAD_S, WorkloadRun

LOG = logging.getLogger(__name__)

#: Length of a turn that waits for nothing but results, and the interval of heartbeats.
READ_S = 0.1
POLL_S = 0.5
#: Results are acknowledged after this many seconds, or with the heartbeat after this many bytes.
ACKNOWLEDGE_S = 2.0
ACKNOWLEDGE_BYTES = 1 << 20
#: Longest preparation of a workload on a worker.
PREPARE_S = 120.0


class LoadLoop:
    """The workloads that are under load at once, each on its part of the workers."""

    def __init__(
        self,
        services: RunServices,
        status: RunStatus,
        failover: Failover,
        workloads: Sequence[WorkloadRun],
    ) -> None:
        self._services = services
        self._status = status
        self._failover = failover
        self._workloads = tuple(workloads)
        self._polled = self._read_at = self._acknowledged = 0.0
        #: Since when Redis does not answer, monotonic.
        self._away_since: float | None = None

    def run(self, turned: Callable[[], None]) -> None:
        """Prepare, load, settle; returns when every iteration has its state.

        `turned` is called after each turn under load. Raises FleetError, StoreLost.
        """
        self._prepare()
        if self._status.interruption.drains:
            for workload in self._workloads:
                workload.call_off()
                workload.end_hooks()
            return
        t0_at = self._services.clock.now_s() + LEAD_S
        for workload in self._workloads:
            self._start(workload, t0_at)
        running = list(self._workloads)
        while running:
            for workload in [one for one in running if one.finished()]:
                workload.settle()
                running.remove(workload)
            try:
                if running:
                    self._turn(running)
                    turned()
            except StoreAway as error:
                self._wait_for_store(error, running)
        for workload in self._workloads:
            workload.end_hooks()

    def _start(self, workload: WorkloadRun, t0_at: float) -> None:
        try:
            workload.start(t0_at)
        except StoreAway as error:
            # workers hear of it with a later turn; that they start late is then start lag
            self._wait_for_store(error, ())

    def _prepare(self) -> None:
        for workload in self._workloads:
            self._patiently(workload.prepare)
        deadline = time.monotonic() + PREPARE_S
        while not all(workload.workers.ready for workload in self._workloads):
            if self._status.interruption.drains:
                return
            self._patiently(self._await_workers)
            if time.monotonic() > deadline:
                slow = " and ".join(
                    workload.workers.delay()
                    for workload in self._workloads
                    if not workload.workers.ready
                )
                raise FleetError(f"within {PREPARE_S:g} s {slow}")

    def _await_workers(self) -> None:
        self._services.receiver.receive(0.02, self._fence_read)
        self._verify_server()
        self._poll()
        for workload in self._workloads:
            workload.await_workers()

    def _patiently(self, step: Callable[[], None]) -> None:
        """Do what may be done again until Redis lets it be done."""
        while True:
            try:
                step()
            except StoreAway as error:
                self._wait_for_store(error, ())
            else:
                return

    def _turn(self, running: Sequence[WorkloadRun]) -> None:
        self._receive(READ_S if running[0].elapsed() > 0 else 0.02)
        self._verify_server()
        now = time.monotonic()
        poll = now - self._polled >= POLL_S
        if poll:
            self._polled = now
            self._poll()
        for workload in running:
            workload.turn(poll=poll)
        if poll:
            self._acknowledge(now)

    def _receive(self, wait_s: float) -> None:
        """Read results, not more often than is of use: each read is a command to Redis."""
        pause_s = self._read_at + wait_s - time.monotonic()
        if pause_s > 0 and not self._services.channel.behind:
            time.sleep(pause_s)
        self._read_at = time.monotonic()
        self._services.receiver.receive(wait_s, self._fence_read)

    def _fence_read(self, nonce: str) -> None:
        worker = self._failover.fence_read(nonce)
        for workload in self._workloads:
            if worker is not None and worker.workload == workload.plan.number:
                workload.record_lost(worker)

    def _acknowledge(self, now: float) -> None:
        """Let workers and Redis forget what is on disk; workers that leave wait for it."""
        channel, workers = self._services.channel, self._services.pool.present
        much = channel.untrimmed >= ACKNOWLEDGE_BYTES
        if not (
            much
            or now - self._acknowledged >= ACKNOWLEDGE_S
            or any(worker.leaving for worker in workers)
        ):
            return
        self._services.controls.change(workers)
        channel.trim()
        self._acknowledged = now

    def _wait_for_store(self, error: StoreAway, running: Sequence[WorkloadRun]) -> None:
        if not self._status.store_away:
            LOG.warning("%s; workers go on with what they have", error)
        self._status.store_away = True
        self._services.check()
        if self._status.interruption.stops:
            raise error
        self._lose_patience(error)
        for workload in running:
            workload.show()
        time.sleep(0.2)

    def _lose_patience(self, error: StoreAway) -> None:
        """End the run after a while. A broker other than Redis may be away on its own."""
        now, patience_s = time.monotonic(), self._services.limits.patience_s
        self._away_since = self._away_since or now
        if max(now - self._away_since, self._services.channel.broker_away_s) > patience_s:
            raise StoreLost(f"{error}, for {patience_s:g} s ([messaging] patience_s)")

    def _verify_server(self) -> None:
        """After Redis was away: it has to be the same server."""
        if self._status.store_away:
            self._away_since = None
            self._services.server.verify()
            self._status.store_away = False

    def _poll(self) -> None:
        self._services.check()
        self._services.pool.poll()
