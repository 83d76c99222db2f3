"""Builds the outcome of a run from its workloads' outcomes: adds load bounds, notes, exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osbench.common.ports import clock as time
from osbench.common.task import Task
from osbench.coordinator.formatting import distinct
from osbench.coordinator.report.exit_code import exit_code
from osbench.coordinator.report.findings.load_bounds import GENERATOR, load_bounds
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.report.report_section import ReportSection
from osbench.coordinator.report.run_outcome import RunEnd, RunOutcome
from osbench.coordinator.report.statements.run_notes import failed_hooks, notes_of
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Bound


@dataclass(frozen=True, kw_only=True)
class OutcomeBuilder:
    """Builds the outcome of a run, at its end or so far; its fields are known before."""

    run_id: str
    task: Task
    tags: tuple[str, ...]
    #: Seconds since 1970-01-01 UTC.
    started_at: float
    #: p99 start lag above which the generator was the limit, seconds.
    lag_limit_s: float
    #: Compares a workload with the prediction of `plan`; None if nothing does.
    plan_section: ReportSection | None = None

    def build(
        self, outcomes: Sequence[WorkloadOutcome], found: Sequence[str], end: RunEnd
    ) -> RunOutcome:
        """Return the outcome of a run, final or so far; `outcomes` are of its workloads, in order.

        Adds the bounds of each load, plan comparisons, notes, among them `found` by watchers, and
        the exit code. The present time becomes the end of the run.
        """
        outcomes = [replace(one, bounds=self._bounds(one, end)) for one in outcomes]
        names = distinct([workload.name for workload in self.task.workloads])
        named = list(zip(names, outcomes, strict=False))
        return RunOutcome(
            run_id=self.run_id,
            title=self.task.title,
            description=self.task.description,
            tags=self.tags,
            started_at=self.started_at,
            finished_at=time.time(),
            exit_code=exit_code(
                broken=bool(end.broken),
                interrupted=end.interrupted,
                aborted=bool(end.breach),
                accountings=[_asked_for(one) for one in outcomes],
                limited=any(bound.fault == GENERATOR for one in outcomes for bound in one.bounds),
                verdicts=[verdict for one in outcomes for verdict in one.verdicts],
                refused=any(one.error for one in outcomes),
                around=bool(end.left_behind or any(failed_hooks(named))),
            ),
            workloads=tuple(outcomes),
            notes=tuple(notes_of(self.run_id, named, end, found)),
            plans=self._plans(outcomes),
        )

    def _plans(self, outcomes: Sequence[WorkloadOutcome]) -> tuple[PlanComparison | None, ...]:
        section = self.plan_section
        return () if section is None else tuple(section(*one) for one in enumerate(outcomes))

    def _bounds(self, outcome: WorkloadOutcome, end: RunEnd) -> tuple[Bound, ...]:
        if outcome.search is None:
            return load_bounds(outcome, self.lag_limit_s, interrupted=end.interrupted)
        # a search overloads on purpose
        limit = outcome.search.limit
        return (Bound(cause="search", fault=GENERATOR, sentence=limit),) if limit else ()


def _asked_for(outcome: WorkloadOutcome) -> Accounting:
    """Return the accounting that the exit code is judged by.

    If the workload's own `abort` rule ended the load, iterations that did not start are left out.
    """
    if outcome.offered.cut_short != "abort":
        return outcome.accounting
    return replace(outcome.accounting, not_started=0)
