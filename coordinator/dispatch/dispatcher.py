"""The dispatcher of one workload: grants its iterations to workers and asks for them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.runner import Step
from osbench.coordinator.dispatch.arrivals import Ints
from osbench.coordinator.dispatch.batches import Batches
from osbench.coordinator.dispatch.closed_load import ClosedLoad
from osbench.coordinator.dispatch.counted_load import CountedLoad
from osbench.coordinator.dispatch.open_load import OpenLoad
from osbench.coordinator.dispatch.port import DispatchPort
from osbench.coordinator.fleet.worker import LeaveReason, WorkerHandle
from osbench.coordinator.results.ledger import Ledger


class Dispatcher:
    """Decides which iterations of a workload go to which worker, and when."""

    #: Places the iterations of a closed load.
    CLOSED: ClassVar[type[ClosedLoad]] = ClosedLoad

    def __init__(
        self,
        port: DispatchPort,
        ledger: Ledger,
        workload: int,
        *,
        is_open: bool,
        max_lag_s: float,
        data: IterationRows | None = None,
        warmup_ns: int = 0,
        planned_s: float | None = None,
    ) -> None:
        """Arrivals of an open load that move are dropped when later than `max_lag_s`.

        `planned_s`: when the plan of an open load ends, seconds after t0, if that is known.
        """
        self._ledger = ledger
        rows = {"rows_of": data.encrypted} if data is not None else {}
        self._batches = Batches(port, ledger, workload, **rows)
        self._load: OpenLoad | ClosedLoad
        if is_open:
            self._load = OpenLoad(
                self._batches,
                ledger,
                max_lag_s=max_lag_s,
                warmup_ns=warmup_ns,
                planned_s=planned_s,
            )
        else:
            limit = data.batch_limit if data is not None else None
            self._load = self.CLOSED(self._batches, ledger, limit)

    @property
    def planned(self) -> int:
        """Numbers given out (closed) or arrivals planned (open)."""
        return self._load.planned

    @property
    def rate_planned(self) -> float | None:
        """Planned arrivals per second; None for a closed load."""
        return self._load.rate_planned

    def has_work(self, step: Step) -> bool:
        """Return whether there is work that could be granted."""
        return self._ledger.available(step.budget) != 0

    def place(
        self, step: Step, workers: Iterable[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Grant workers the work that they should have now. Raises StoreUnreachable."""
        with_users = [worker for worker in workers if worker.share]
        self._load.place(step, with_users, elapsed_s, stop_s)

    def deliver(self, workers: Sequence[WorkerHandle]) -> None:
        """Send batches again that did not arrive; forget recalls that were followed.

        Raises StoreUnreachable.
        """
        self._batches.deliver(workers)
        for worker in workers:
            if worker.recall:
                self._batches.forget_recalls(worker)

    def recall_all(self, workers: Sequence[WorkerHandle]) -> None:
        """Recall all unstarted iterations: nothing more is to start."""
        self._batches.recall_all(workers)

    def recall_unused(self, workers: Sequence[WorkerHandle]) -> None:
        """Recall unstarted iterations that their worker should not or cannot start.

        Its results cannot be read, or its virtual users have moved to others.
        """
        self._batches.recall_all(
            [
                one
                for one in workers
                if one.leave_reason is LeaveReason.UNREADABLE or (not one.share and one.beat.queued)
            ]
        )

    def restore(self, first: int, dues: Ints) -> None:
        """Add arrivals that an earlier coordinator granted, from number `first` on."""
        if isinstance(self._load, OpenLoad):
            self._load.restore(first, dues)

    def cut(self, elapsed_s: float) -> tuple[float, int]:
        """Forget planned arrivals that were not granted: the load is to change.

        Returns when the new load begins, seconds after t0, and how many arrivals of an open load
        were planned before.
        """
        if isinstance(self._load, OpenLoad):
            return self._load.cut(elapsed_s)
        return elapsed_s, 0

    def skip(self, step: Step, until_s: float) -> None:
        """Drop the arrivals that were due while there was no coordinator."""
        if isinstance(self._load, OpenLoad):
            self._load.skip(step, until_s)


class ScriptedDispatcher(Dispatcher):
    """Dispatcher of a workload whose iterations the runner's own code starts."""

    CLOSED = CountedLoad
