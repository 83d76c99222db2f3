"""The data and the services of one workload's load, on which its user limits, end and view work."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from osbench.common.protocol.messages import Specification
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.run.plan import WorkloadPlan
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.load.run.workload.stop_rules import StopRules
from osbench.coordinator.load.run.workload.workload_workers import WorkloadWorkers
from osbench.coordinator.results.accounting.workload_results import WorkloadResults


class Phase(enum.Enum):
    """Stages of a workload: before its load, under load, and after its last grant."""

    PREPARING = "preparing"
    RUNNING = "running"
    #: No iteration is granted any more.
    STOPPING = "stopping"


@dataclass(kw_only=True, eq=False)
class LoadParts:
    """The parts that belong to one workload's load, and services of the whole run.

    Made as `WorkloadRun` when the workload begins.
    """

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
        """The workload's number in the task, counted from 0."""
        return self.plan.number

    @property
    def name(self) -> str:
        """The name of the workload in messages."""
        return self.plan.name

    @property
    def is_open(self) -> bool:
        """Return whether iterations start at planned times, instead of whenever a user is free."""
        return self.runner.is_open

    @property
    def begun(self) -> bool:
        """Return whether a start of the load is noted, so that there is something to report."""
        return self.services.load_clock.begun(self.number)

    @property
    def under_load(self) -> bool:
        """Return whether iterations are started, or would be if the load were not paused."""
        return self.phase is Phase.RUNNING and not self.rules.reached(self.elapsed())

    @property
    def closed(self) -> bool:
        """Return whether the ledger is closed: every iteration has its final state for good."""
        return self.results.ledger.closed

    def elapsed(self) -> float:
        """Return the seconds since t0 (the start of the load); negative before."""
        return self.services.load_clock.elapsed_s(self.number)
