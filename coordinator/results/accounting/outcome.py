"""Outcome of a workload: the input of the report and of the collection of traces.

Its statistics and charts do not change any more; CSV, Rally JSON and traces read the result blocks
of the run directory in addition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.sla import Verdict
from osbench.common.task import Named
from osbench.coordinator.plugins.contexts.history import ContextRecord
from osbench.coordinator.plugins.hooks.executor import HookReport
from osbench.coordinator.results.accounting.charts import Charts
from osbench.coordinator.results.accounting.core_use import CpuProfile
from osbench.coordinator.results.accounting.counter_figures import Counters
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay
from osbench.coordinator.results.accounting.marks import Mark
from osbench.coordinator.results.accounting.search.trials import SearchOutcome
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import (
    Accounting,
    Bound,
    Offered,
    Tracing,
    Warmup,
)
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics


@dataclass(frozen=True, kw_only=True)
class WorkloadOutcome:
    """Everything known of one workload after a run: settings, accounting, statistics, verdicts."""

    #: Its name in outputs; the scenario's name if the task has none.
    name: str
    scenario: str
    #: Whose scenario ran: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str = NATIVE
    #: Title of the subtask, and the workload's position in it, from 0.
    title: str
    position: int
    #: Description of the subtask in the task.
    subtask_description: str = ""
    subtask_tags: tuple[str, ...] = ()
    description: str = ""
    runner: Named
    #: Addresses that its arguments name, as scheme, host and port.
    targets: tuple[str, ...] = ()
    #: Its virtual users are coroutines of an event loop, not threads.
    coroutines: bool = False
    #: The load has started.
    begun: bool = True
    #: Reason if its contexts or arguments failed, so that it could not begin; else "".
    error: str = ""
    #: Reason if the run ended before it; else "".
    not_begun: str = ""
    accounting: Accounting
    warmup: Warmup = field(default_factory=Warmup)
    offered: Offered
    #: Explanations by traces are added once these are collected.
    tracing: Tracing
    statistics: WorkloadStatistics
    verdicts: tuple[Verdict, ...] = ()
    #: Source of the criterion of each verdict; all native if this is empty.
    sla_sources: tuple[str, ...] = ()
    hooks: tuple[HookReport, ...] = ()
    contexts: tuple[ContextRecord, ...] = ()
    charts: Charts = field(default_factory=Charts)
    #: Outputs and errors that were left out because they were too large.
    too_large: int = 0
    #: Worker processes that took part.
    workers: tuple[WorkerFigures, ...] = ()
    #: Figures over time: CPU of workers, the requested load (`Runner.asked`), marks.
    cpu: CpuProfile = field(default_factory=CpuProfile)
    asked: tuple[tuple[float, float], ...] = ()
    #: Statistics by stage; empty if the load has one stage.
    stages: tuple[StageFigures, ...] = ()
    #: Result of a search; None for other loads.
    search: SearchOutcome | None = None
    marks: tuple[Mark, ...] = ()
    #: Counters of the system under test; None if none were read.
    counters: Counters | None = None
    #: When the load began, seconds since 1970-01-01 UTC (0: it did not), and for how long it is on.
    t0_at: float = 0.0
    elapsed_s: float = 0.0
    #: Causes that bound the load; empty if it was offered as requested.
    bounds: tuple[Bound, ...] = ()
    #: Cause in words if a rule, its users or its own code cut the load short; "" otherwise.
    cut_short_by: str = ""
    #: Longest time that an iteration may take, seconds.
    timeout_s: float = 0.0
    #: Workers without a part in the load, since its runner starts all iterations in one process.
    idle_workers: int = 0
    #: The file of `args_from` whose last row ended the load; "" if none did.
    data_used_up: str = ""

    @property
    def delay(self) -> GeneratorDelay:
        """Delays that the load generator added."""
        return GeneratorDelay(self.statistics, sum(one.virtual_users for one in self.workers))
