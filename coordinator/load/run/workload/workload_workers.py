"""The workers of one workload: their preparation, and the spans that they have written."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from osbench.common.errors import ContextError
from osbench.common.ports import clock as time
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.fleet.worker import Readiness, WorkerHandle
from osbench.coordinator.load.transport.controls import Controls

LOG = logging.getLogger(__name__)


class WorkloadWorkers:
    """The workers of the run that serve one workload; lost ones are in `served`."""

    def __init__(
        self,
        pool: WorkerPool,
        controls: Controls,
        workload: int,
        name: str,
        size: int = 0,
        *,
        coroutines: bool = False,
    ) -> None:
        """`name` is the workload's, for messages; `size`: workers that it had before a resume.

        A `size` of 0, or below the workers now present, has no effect. `coroutines`: its virtual
        users are coroutines, not threads.
        """
        self._pool = pool
        self._controls = controls
        #: Number of the workload.
        self.workload = workload
        self._name = name
        self._coroutines = coroutines
        #: Workers it began with.
        self._size = max(size, len(self.present))
        self._spans_before: dict[WorkerHandle, tuple[int, int]] = {}
        self._spans_after: dict[WorkerHandle, list[int]] = {}
        #: SHA-256 of the signed specification.
        self.specification = b""

    @property
    def present(self) -> list[WorkerHandle]:
        """The live workers of the workload, which send heartbeats."""
        return self._pool.serving(self.workload)

    @property
    def longest(self) -> str:
        """The longest running iteration, begin or end of a user, in words with its place; or ""."""
        found = [(run, worker.beat) for worker in self.present for run in worker.beat.longest]
        if not found:
            return ""
        (iteration, lasted_ns, action, place), beat = max(found, key=lambda one: one[0][1])
        what = f"iteration {iteration}" if iteration else "a user that begins or ends"
        within = f" in {action}" if action else ""
        where = f", at {place}" if place else ""
        return f"{what} on {beat.host}:{beat.pid}: {lasted_ns / 1e9:.0f} s{within}{where}"

    @property
    def unheard(self) -> list[WorkerHandle]:
        """Workers of an earlier coordinator that have not accepted this coordinator yet.

        Of all workloads of the run.
        """
        return self._pool.unheard

    @property
    def active(self) -> list[WorkerHandle]:
        """The live workers that can have virtual users."""
        return [worker for worker in self.present if worker.has_users]

    @property
    def takers(self) -> list[WorkerHandle]:
        """The live workers that can be granted iterations at this moment."""
        now = time.monotonic()
        return [worker for worker in self.present if worker.takes_work(now)]

    @property
    def served(self) -> list[WorkerHandle]:
        """All workers that took part in the workload, lost ones too, sorted by name."""
        return sorted(self._spans_before, key=lambda worker: worker.name)

    @property
    def lacking(self) -> int:
        """The number of workers that are missing compared with the beginning.

        Negative if there are more now. Workers that are leaving count as missing.
        """
        return self._size - sum(not worker.leaving for worker in self.present)

    @property
    def count(self) -> int:
        """The number of live workers that are not leaving and can prepare the workload."""
        failed = Readiness.FAILED
        return sum(not (one.leaving or one.readiness is failed) for one in self.present)

    # before the load

    def begin(self) -> None:
        """Notify the workers to prepare the workload; does not wait for them.

        Raises StoreUnreachable.
        """
        workers = self.present
        for worker in workers:
            self._enlist(worker)
        self._prepare(workers)

    def add(self, worker: WorkerHandle) -> None:
        """Add a worker to the workload, and notify it to prepare. Raises StoreUnreachable."""
        self._enlist(worker)
        self._prepare([worker])

    def _prepare(self, workers: Sequence[WorkerHandle]) -> None:
        self._controls.change(
            workers,
            workload=self.workload,
            specification=self.specification,
            t0_at=None,
            user_limit=0,
            generation=0,
            pace=0.0,
            pace_part=[],
            stop_s=None,
        )

    def take_over(self, worker: WorkerHandle) -> None:
        """Take over a worker of an earlier coordinator, with its users if it has prepared.

        Else notifies it to prepare the workload again. Does nothing if it was taken over or added
        before. Raises StoreUnreachable.
        """
        if worker in self._spans_before:
            return
        if worker.go_on(self.workload, coroutines=self._coroutines):
            self._note_spans(worker)
        else:
            self.add(worker)

    def _enlist(self, worker: WorkerHandle) -> None:
        worker.begin(self.workload, coroutines=self._coroutines)
        self._note_spans(worker)

    def _note_spans(self, worker: WorkerHandle) -> None:
        # counted since the process began, perhaps for another run
        written, dropped, *_ = worker.beat.spans
        self._spans_before[worker] = (written, dropped)

    @property
    def ready(self) -> bool:
        """Return whether all live workers have prepared; True without workers."""
        return all(worker.ready for worker in self.present)

    def delay(self) -> str:
        """Return the words "NAME was not prepared on HOST, HOST", for the log or an error."""
        slow = [worker.beat.host for worker in self.present if not worker.ready]
        return f"{self._name} was not prepared on {', '.join(slow)}"

    def note_prepared(self, *, strict: bool) -> None:
        """Mark workers as ready if their heartbeats say that they have prepared; does not wait.

        A worker that cannot prepare is logged and not used; if `strict`, ContextError is raised
        instead.
        """
        for worker in self.present:
            beat = worker.beat
            if worker.readiness is not Readiness.PENDING:
                continue
            if beat.membership != worker.mid or beat.prepared != self.workload:
                continue
            if not beat.problem:
                worker.readiness = Readiness.READY
                continue
            text = f"worker {beat.host} (pid {beat.pid}): {beat.problem}"
            if strict:
                raise ContextError(text)
            LOG.warning("%s; it is not used", text)
            worker.readiness = Readiness.FAILED

    # spans

    def freeze_spans(self) -> None:
        """Keep the present counts of spans as final: later spans are of another workload."""
        for worker in self._spans_before:
            self._spans_after.setdefault(worker, worker.beat.spans)

    def spans(self) -> tuple[int, int]:
        """Return the counts of spans (written, dropped) by the workers for this workload."""
        written = dropped = 0
        for worker, (written_before, dropped_before) in self._spans_before.items():
            after = self._spans_after.get(worker, worker.beat.spans)
            written += after[0] - written_before
            dropped += after[1] - dropped_before
        return written, dropped
