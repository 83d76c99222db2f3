"""The dispatcher of one workload: grants its iterations to workers and recalls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.runner import Step
from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.dispatch.arrivals import Ints
from osbench.coordinator.load.dispatch.batches import Batches
from osbench.coordinator.load.dispatch.closed_load import ClosedLoad
from osbench.coordinator.load.dispatch.open_load import ArrivalRules, OpenLoad
from osbench.coordinator.load.dispatch.port import DispatchPort
from osbench.coordinator.load.fleet.worker import LeaveReason, WorkerHandle
from osbench.coordinator.results.accounting.ledger import Ledger


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
        arrivals: ArrivalRules | None = None,
        data: IterationRows | None = None,
    ) -> None:
        """Prepare the dispatch of the workload with the number `workload`.

        `data` has the rows of a data file, one per iteration. `arrivals`: of an open load.
        """
        self._ledger = ledger
        self._data = data
        self._batches = Batches(port, ledger, workload, self._rows_of)
        self._load: OpenLoad | ClosedLoad
        if arrivals is not None:
            self._load = OpenLoad(self._batches, ledger, arrivals)
        else:
            limit = data.batch_limit if data is not None else None
            self._load = self.CLOSED(self._batches, ledger, limit)

    def _rows_of(self, numbers: Intervals) -> bytes:
        if self._data is None:
            return b""
        load = self._load
        ranks = load.ranks_of(numbers) if isinstance(load, OpenLoad) else numbers.members()
        return self._data.encrypt(numbers, ranks.tolist())

    @property
    def planned(self) -> int:
        """Return the number of iterations granted (closed) or arrivals planned (open) so far."""
        return self._load.planned

    @property
    def rate_planned(self) -> float | None:
        """Return the planned arrivals per second; None for a closed load, or if not known."""
        return self._load.rate_planned

    def has_work(self, step: Step) -> bool:
        """Return whether iterations can be granted: some of the budget of `step` is left.

        Numbers that workers gave back count as left. True with an unlimited budget.
        """
        return self._ledger.available(step.budget) != 0

    def place(
        self, step: Step, workers: Iterable[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Grant workers with virtual users the work that they should have now.

        In a closed load, recalls work that is too much; in an open load, drops arrivals that are
        too late. `elapsed_s`, and `stop_s`, from which nothing starts, are seconds after t0. Raises
        errors of `Batches.grant`.
        """
        with_users = [worker for worker in workers if worker.user_limit]
        self._load.place(step, with_users, elapsed_s, stop_s)

    def deliver(self, workers: Sequence[WorkerHandle]) -> None:
        """Send batches that workers have not got or taken, and recall batches not taken for long.

        Forgets recalls that workers have followed. Raises StoreUnreachable.
        """
        self._batches.deliver(workers)
        for worker in workers:
            if worker.recall:
                self._batches.forget_recalls(worker)

    def recall_all(self, workers: Sequence[WorkerHandle]) -> None:
        """Ask workers to give back all iterations not started, because nothing more is to start."""
        self._batches.recall_all(workers)

    def recall_unused(self, workers: Sequence[WorkerHandle]) -> None:
        """Ask workers to give back unstarted iterations that they should not or cannot start.

        These are workers whose results cannot be read, and workers without virtual users that still
        have queued iterations.
        """
        self._batches.recall_all(
            [
                one
                for one in workers
                if one.leave_reason is LeaveReason.UNREADABLE
                or (not one.user_limit and one.beat.queued)
            ]
        )

    def restore(self, first: int, dues: Ints) -> None:
        """Add arrivals that an earlier coordinator granted, numbered from `first`, to an open load.

        `dues`: their due times, nanoseconds after t0. No effect for a closed load.
        """
        if isinstance(self._load, OpenLoad):
            self._load.restore(first, dues)

    def cut(self, elapsed_s: float) -> tuple[float, int]:
        """Discard planned arrivals due after a change of the load that were not granted.

        Returns when the changed load begins, seconds after t0 (`elapsed_s` or later), and how many
        arrivals of an open load were planned before; for a closed load `elapsed_s` and 0.
        """
        if isinstance(self._load, OpenLoad):
            return self._load.cut(elapsed_s)
        return elapsed_s, 0

    def skip(self, step: Step, until_s: float) -> None:
        """Drop the arrivals due before `until_s`, seconds after t0: there was no coordinator.

        They count as dropped. `step` has the arrivals to plan. No effect for a closed load.
        """
        if isinstance(self._load, OpenLoad):
            self._load.skip(step, until_s)
