"""Parts of a run that take part in one load; its shares, its end and its view work on them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from osbench.common.protocol.messages import Specification
from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.run.plan import WorkloadPlan
from osbench.coordinator.run.services import RunServices
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.run.workload.stop_rules import StopRules
from osbench.coordinator.run.workload.workload_workers import WorkloadWorkers


class Phase(enum.Enum):
    """How far a workload is."""

    PREPARING = "preparing"
    RUNNING = "running"
    #: Nothing is granted any more.
    STOPPING = "stopping"


@dataclass(kw_only=True, eq=False)
class LoadParts:
    """Plan, results and workers of one workload, and what it has of the run."""

    plan: WorkloadPlan
    specification: Specification
    services: RunServices
    status: RunStatus
    results: WorkloadResults
    dispatcher: Dispatcher
    workers: WorkloadWorkers
    rules: StopRules
    phase: Phase = Phase.PREPARING
    #: The runner of the plan, with the changes that were made to its load.
    runner: SteeredRunner = field(init=False)

    def __post_init__(self) -> None:
        changes = self.services.accounts.changes[self.number]
        self.runner = SteeredRunner(self.plan.runner, changes)

    @property
    def number(self) -> int:
        """The workload's number in the task."""
        return self.plan.number

    @property
    def name(self) -> str:
        """The name of the workload in messages."""
        return self.plan.name

    @property
    def is_open(self) -> bool:
        """Iterations start at planned instants."""
        return self.runner.is_open

    @property
    def begun(self) -> bool:
        """The load has started, so that there is something to report."""
        return self.services.load_clock.begun(self.number)

    @property
    def under_load(self) -> bool:
        """Iterations are started, or would be if the load were not paused."""
        return self.phase is Phase.RUNNING

    @property
    def closed(self) -> bool:
        """Every iteration has its state."""
        return self.results.ledger.closed

    def elapsed(self) -> float:
        """Seconds since t0; negative before."""
        return self.services.load_clock.elapsed_s(self.number)
