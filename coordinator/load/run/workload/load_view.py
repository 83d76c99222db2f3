"""View of a load: snapshots of its progress, and its offered load for the report."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.ports import clock as time
from osbench.coordinator.formatting import count
from osbench.coordinator.load.run.workload.load_parts import LoadParts
from osbench.coordinator.load.run.workload.user_allocation import UserAllocation
from osbench.coordinator.results.accounting.live_figures import SILENT_S, LiveFigures
from osbench.coordinator.results.accounting.totals import Offered
from osbench.coordinator.results.storage.progress import Snapshot

#: Between two snapshots, seconds.
SHOW_S = 0.25


class LoadView:
    """Reads the figures of one load for live displays and for the report."""

    def __init__(
        self, load: LoadParts, allocation: UserAllocation, progress: Callable[[Snapshot], None]
    ) -> None:
        """`progress` gets the snapshots: at most four per second, and one per change of phase."""
        self._load = load
        self._allocation = allocation
        self._progress = progress
        self._figures = LiveFigures(load.results, is_open=load.is_open)
        self._shown = 0.0
        self._phase = load.phase

    @property
    def started(self) -> int:
        """The number of settled iterations that may have started, dropped arrivals included.

        Settled: in a final state.
        """
        sums = self._load.results.ledger.accounting()
        return sums.settled - sums.not_started

    @property
    def cut_short(self) -> str | None:
        """The cause if the load was stopped before its end, such as "interrupted"; else None."""
        return self._load.services.history.cut_short(self._load.number, self.started)

    def offered(self) -> Offered:
        """Return the load that was offered up to the last end, next to the requested one.

        Rates for an open load, virtual users for a closed one.
        """
        statistics = self._load.results.statistics
        return self._allocation.offered((statistics.last_end or 0) / 1e9, self.cut_short)

    @property
    def data_used_up(self) -> bool:
        """Return whether the last row of the data file ended a load that would have gone on."""
        plan = self._load.plan
        if plan.data is None or plan.runner.planned is not None or self.cut_short:
            return False
        return self.started >= len(plan.data)

    def show(self) -> None:
        """Pass a snapshot to `progress`, unless the last one is younger than SHOW_S seconds.

        A change of phase is always shown.
        """
        load, allocation = self._load, self._allocation
        now, phase = time.monotonic(), load.phase
        # a short load is over before long
        if now - self._shown < SHOW_S and phase == self._phase:
            return
        self._shown, self._phase = now, phase
        workers, ledger = load.workers, load.results.ledger
        sums, paused = ledger.accounting(), load.under_load and load.runner.is_paused
        fields = self._figures.fields(now, workers.served)
        # rows that a duration may leave unused are not a plan
        planned = None if allocation.timed else allocation.planned
        self._progress(
            Snapshot(
                workload=load.number,
                name=load.name,
                title=load.plan.title,
                phase="paused" if paused else load.phase.value,
                elapsed_s=max(0.0, load.elapsed()),
                planned=planned,
                settled=ledger.settled,
                dropped=sums.dropped,
                ok=sums.ok,
                failed=sums.failed + sums.timed_out,
                busy=sum(worker.beat.busy for worker in workers.present),
                workers=len(workers.active),
                away=load.status.store_away,
                longest=workers.longest,
                awaited=self._wait_words(),
                left_s=None
                if paused
                else self._left_s(planned and planned - ledger.settled, fields["rate"]),
                **fields,
            )
        )

    def _wait_words(self) -> str:
        ledger, workers = self._load.results.ledger, self._load.workers.served
        silent = [one for one in workers if not one.present or one.silence_s >= SILENT_S]
        held = {one: number for one in silent if (number := ledger.outstanding(one.name))}
        if not held:
            return ""
        iterations = count(sum(held.values()), "iteration")
        if len(held) > 1:
            return f"{iterations} of {len(held)} workers that are silent or lost"
        (worker,) = held
        state = "silent" if worker.present else "lost"
        return f"{iterations} of {worker.beat.host}:{worker.beat.pid}, which is {state}"

    def _left_s(self, unsettled: int | None, rate: float) -> float | None:
        """Return the seconds until the load ends; None if unknown or the load is not running.

        `unsettled`: remaining iterations of the plan, None without a plan. `rate`: iterations that
        end per second.
        """
        load = self._load
        if not load.under_load:
            return None
        if load.rules.stop_s is not None:
            return max(0.0, load.rules.stop_s - load.elapsed())
        return unsettled / rate if unsettled is not None and rate else None
