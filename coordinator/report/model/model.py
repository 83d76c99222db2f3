"""The report of a run as dataclasses, the same whether just measured or read from disk.

Fields are the keys of `summary.json` (docs/results.schema.json). Old runs lack some: defaults hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from osbench.common.errors import WrongDocument
from osbench.common.plugin.plugin_names import NATIVE
from osbench.coordinator.report.exit_code import LIMITED
from osbench.coordinator.report.findings.load_bounds import GENERATOR
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.report.model.time_figures import ByState, Latency, TimeFigures
from osbench.coordinator.report.model.workload_parts import (
    CheckCounts,
    ContextReport,
    ErrorReport,
    HookRun,
    LoadProfileBins,
    Loops,
    Outputs,
    OwnLateness,
    RequestsReport,
    RunnerChoice,
    SearchReport,
    SlaVerdict,
    SlowIteration,
    StallTimes,
    Threads,
    ThroughputFigures,
    UserFigures,
)
from osbench.coordinator.report.staircase.staircase import Staircase
from osbench.coordinator.results.accounting.breakdown import BreakdownFigures
from osbench.coordinator.results.accounting.counter_figures import CounterFigures
from osbench.coordinator.results.accounting.drill_figures import DrillFigures
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import (
    Accounting,
    Bound,
    Offered,
    Tracing,
    Warmup,
)
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage.run_documents import SUMMARY_FORMAT

#: States of a run: a coordinator holds it; it has its summary; it ended without one.
RUNNING, FINISHED, CRASHED = "running", "finished", "crashed"


@dataclass(frozen=True, kw_only=True)
class WorkloadReport:
    """The report of one workload; while the run goes on, its numbers so far."""

    #: Its name in outputs; the scenario's name if the task has none.
    name: str
    scenario: str = ""
    #: Whose scenario ran: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str = NATIVE
    #: Title of the subtask, and its description in the task.
    subtask: str = ""
    subtask_description: str = ""
    subtask_tags: tuple[str, ...] = ()
    #: Position in the subtask, from 0.
    position: int = 0
    description: str = ""
    #: Reason if it could not begin, and if the run ended before it; None if it did begin.
    error: str | None = None
    not_begun: str | None = None
    runner: RunnerChoice = field(default_factory=RunnerChoice)
    #: Addresses that the arguments name, as scheme, host and port.
    targets: tuple[str, ...] = ()
    accounting: Accounting = field(default_factory=Accounting)
    warmup: Warmup = field(default_factory=Warmup)
    latency: Latency = field(default_factory=Latency)
    #: Times of atomic actions by path, nested actions after their parent.
    actions: Mapping[str, ByState] = field(default_factory=dict)
    #: Empty if the load has one stage.
    stages: tuple[StageFigures, ...] = ()
    #: None for loads that do not search.
    search: SearchReport | None = None
    #: None for loads without a drill.
    drill: DrillFigures | None = None
    #: None for loads of one level.
    staircase: Staircase | None = None
    #: Counters of the system under test, resources first, the fullest first.
    counters: tuple[CounterFigures, ...] = ()
    #: Results by zone or by server, if the task asks for it.
    breakdowns: tuple[BreakdownFigures, ...] = ()
    #: None if the workload made no HTTP requests.
    requests: RequestsReport | None = None
    start_lag: TimeFigures = field(default_factory=TimeFigures)
    #: None if virtual users are threads; and if they are coroutines.
    loops: Loops | None = None
    threads: Threads | None = None
    stalls: StallTimes = field(default_factory=StallTimes)
    #: None if virtual users do nothing but iterations.
    users: UserFigures | None = None
    #: Soft checks by name.
    checks: Mapping[str, CheckCounts] = field(default_factory=dict)
    offered: Offered = field(default_factory=Offered)
    own_lateness: OwnLateness | None = None
    #: Causes that bound the load.
    bounds: tuple[Bound, ...] = ()
    throughput: ThroughputFigures = field(default_factory=ThroughputFigures)
    tracing: Tracing = field(default_factory=Tracing)
    exemplars: tuple[SlowIteration, ...] = ()
    #: The most frequent kinds; and iterations that ended with another error.
    errors: tuple[ErrorReport, ...] = ()
    other_errors: int = 0
    sla: tuple[SlaVerdict, ...] = ()
    hooks: tuple[HookRun, ...] = ()
    contexts: tuple[ContextReport, ...] = ()
    outputs: Outputs = field(default_factory=Outputs)
    load_profile: LoadProfileBins = field(default_factory=LoadProfileBins)
    workers: tuple[WorkerFigures, ...] = ()
    #: Prediction of `plan`, compared with the run; None if there was none.
    plan: PlanComparison | None = None

    @property
    def unbegun(self) -> str:
        """Reason why the load did not begin; "" if it began."""
        return self.error or self.not_begun or ""

    @property
    def is_open(self) -> bool:
        """Return whether the runner is open: iterations start at planned times."""
        return self.offered.is_open

    @property
    def kind(self) -> str:
        """Kind of time to judge by: "response" for an open load, "service" for a closed one."""
        return "response" if self.is_open else "service"

    @property
    def main_times(self) -> TimeFigures:
        """Times of successful iterations, of the kind to judge by: response or service times."""
        return self.times(self.kind)

    @property
    def bad(self) -> int:
        """Number of iterations that failed or timed out."""
        return self.accounting.failed + self.accounting.timed_out

    @property
    def ran(self) -> int:
        """Number of iterations that ran: ok, failed or timed out."""
        return self.accounting.ok + self.bad

    @property
    def missing(self) -> int:
        """Number of planned iterations that did not run to an end: dropped, lost or not started."""
        return max(0, self.accounting.planned - self.ran)

    @property
    def is_generators(self) -> bool:
        """Return whether late starts are the fault of the load generator.

        True unless bounds of the load are known, and all are of the service or the task.
        """
        faults = [bound.fault for bound in self.bounds]
        return not faults or "generator" in faults

    def times(self, kind: str, state: str = "ok") -> TimeFigures:
        """Return the times of iterations that ended in `state`: "ok", "failed" or "timed_out".

        `kind` is "service" or "response".
        """
        return self.latency.kind(kind).state(state)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of a run; while the run goes on, its numbers so far."""

    format: int = SUMMARY_FORMAT
    run_id: str = ""
    task: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    #: ISO 8601, UTC; None if that is not known.
    started_at: str | None = None
    finished_at: str | None = None
    #: None of a run that goes on.
    exit_code: int | None = None
    exit_meaning: str = ""
    #: Sentences that the reader must know.
    notes: tuple[str, ...] = ()
    workloads: tuple[WorkloadReport, ...] = ()

    @property
    def code(self) -> int:
        """Exit code of a run that is over. Raises ValueError if it goes on."""
        if self.exit_code is None:
            raise ValueError(f"run {self.run_id} has not ended")
        return self.exit_code

    @property
    def is_limited(self) -> bool:
        """Whether the load generator was the limit, or may be why a criterion failed."""
        bounds = (bound for one in self.workloads for bound in one.bounds)
        return self.exit_code == LIMITED or any(bound.fault == GENERATOR for bound in bounds)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object, for `--json` and the run directory."""
        document: dict[str, Any] = json_codec.to_json(self)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the report that the JSON object of a summary describes.

        Missing parts get their defaults. Raises DamagedRun if `workloads` or a field without
        default is missing, or a part has another shape.
        """
        try:
            workloads = [_with_scenario(one) for one in document["workloads"]]
            return json_codec.from_json(cls, {**document, "workloads": workloads})
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise WrongDocument(
                f"summary.json of run {document.get('run_id')} is damaged: {error}"
            ) from None


def _with_scenario(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy with the key `scenario`; if missing, as in older releases, it is the name."""
    return {"scenario": workload.get("name"), **workload}
