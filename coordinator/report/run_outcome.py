"""The outcome of a run, from which its report is measured."""

from __future__ import annotations

from dataclasses import dataclass

from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcomes of a run's workloads; while the run goes on, the numbers so far."""

    run_id: str
    #: Title of the task.
    title: str
    description: str = ""
    tags: tuple[str, ...] = ()
    #: Seconds since 1970-01-01 UTC.
    started_at: float
    finished_at: float
    exit_code: int
    workloads: tuple[WorkloadOutcome, ...]
    #: Messages that the reader must know, such as why the load was not the requested one.
    notes: tuple[str, ...] = ()
    #: Predictions of `plan` for each workload, compared with the run; empty if there were none.
    plans: tuple[PlanComparison | None, ...] = ()
