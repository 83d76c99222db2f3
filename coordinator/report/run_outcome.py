"""The outcome of a run, from which its report is measured."""

from __future__ import annotations

from dataclasses import dataclass

from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.results.outcome import WorkloadOutcome


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """A run that has ended, or one that goes on, so far."""

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
    #: Sentences: what the reader must know, such as why the load was not what was asked for.
    notes: tuple[str, ...] = ()
    #: What `plan` said of each workload, beside what happened; empty: it said nothing of any.
    plans: tuple[PlanComparison | None, ...] = ()
