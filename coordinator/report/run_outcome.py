"""The end and the outcome of a run, from which its report is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome


@dataclass(frozen=True, kw_only=True)
class Disturbances:
    """Disturbances of a run: lost data, set clocks, refused messages, delayed workers."""

    #: How often a coordinator went on with the run after another had ended.
    resumptions: int = 0
    #: How often Redis had lost data that had been written to it.
    rollbacks: int = 0
    #: Result blocks that did not arrive, by worker.
    undelivered: Mapping[str, int] = field(default_factory=dict)
    #: Seconds by which the wall clock of a host was set back and forward.
    clock_steps: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: Messages that any process refused, by reason, the most frequent first.
    refused: Mapping[str, int] = field(default_factory=dict)
    #: Reasons for which a worker got no more work, by worker.
    departed: Mapping[str, str] = field(default_factory=dict)
    #: Errors outside of iterations, each with its number.
    asides: Sequence[tuple[str, int]] = ()
    #: Entries of workers' logs that were not kept.
    log_cut: int = 0
    #: Iterations that started after the lease to start them had ended.
    started_late: int = 0


@dataclass(frozen=True)
class Breach:
    """The first criterion that failed for good, by which a run stops all load if it is to."""

    #: Name of its workload.
    workload: str
    criterion: str
    #: Why it failed, as known when the load was stopped.
    detail: str

    def __str__(self) -> str:
        return f"{self.workload}: {self.criterion}: {self.detail}"


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """Reasons and messages at the end of a run that do not belong to a workload."""

    #: Reason if the run could not go on; "" if it could.
    broken: str = ""
    interrupted: bool = False
    #: The criterion that stopped the load; None if none did.
    breach: Breach | None = None
    #: Messages on workers, servers and blocks that were lost.
    losses: Sequence[str] = ()
    #: Messages on contexts that could not be undone.
    left_behind: Sequence[str] = ()
    disturbances: Disturbances = field(default_factory=Disturbances)


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
