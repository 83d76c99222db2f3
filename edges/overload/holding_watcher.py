"""The watcher of overloads: adds counters and calls by span to the figures that stayed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from osbench.common.plugin.sla import SpanSelection
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.watcher import Findings, WatchedRun, Watcher
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome


class HoldingWatcher(Watcher):
    """Compares counters and calls by span before an overload with their values at the end."""

    AFTER: ClassVar[tuple[str, ...]] = ("counters", "traces")

    def __init__(self) -> None:
        self._run: WatchedRun | None = None

    @classmethod
    def of(cls, plan: RunPlan, *, resumed: bool) -> HoldingWatcher | None:
        """Return the watcher of a run; None if no workload has an overload."""
        overloads = any(one.runner.NAME == "overload" for one in plan.workloads)
        return cls() if overloads else None

    def begin(self, run: WatchedRun) -> str:
        """Keep the run for its end."""
        self._run = run
        return ""

    def collect(
        self,
        outcomes: Sequence[WorkloadOutcome],
        selections: Mapping[int, Sequence[SpanSelection]],
    ) -> Findings:
        """Note in the statistics of each overload which figures have stayed up."""
        # few runs have an overload
        from osbench.edges.overload.overload_statistics import (  # noqa: PLC0415 - as above
            OverloadStatistics,
        )
        from osbench.edges.overload.watched_counters import (  # noqa: PLC0415 - as above
            counter_figures,
            span_figures,
        )

        assert self._run is not None
        for outcome in outcomes:
            phases = outcome.statistics.drill_phases
            if isinstance(phases, OverloadStatistics):
                counters = counter_figures(outcome.counters, phases.stretches)
                spans = span_figures(self._run.directory, phases.traced)
                phases.note_held([*counters, *spans])
        return Findings(outcomes=outcomes)
