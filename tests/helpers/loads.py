"""A workload on no workers, without Redis or disk: its journal is a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from helpers.fixed_clock import FixedClock
from osbench.common.plugin.runner import Runner, Step
from osbench.common.plugin.scenario import Scenario
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.fleet.zones import NO_ZONES
from osbench.coordinator.load.run.load_clock import LoadClock
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.run.services import RunPort
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.workload.stop_rules import StopRules
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.load.run.workload.workload_workers import WorkloadWorkers
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

NOW_S = 100.0


class Timed(Runner):
    """A closed runner that stops the load after a second, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__({"concurrency": 2})
        self.times = 0

    def step(self, *_: object) -> Step:
        """No users, and the stop time."""
        self.times += 1
        return Step(users=(), stop_s=1.0)

    def users(self, _: float) -> int:
        """Two at any time."""
        return 2


def workload(runner: Any, hooks: Any) -> WorkloadRun:
    """A load that has not begun, with `services.journal`."""
    status = RunStatus()
    pool: Any = SimpleNamespace(
        serving=lambda _: [], present=[], workers={}, unheard=[], watched_s=0.0
    )
    controls: Any = SimpleNamespace(write=lambda _: None, change=lambda *_, **__: None)
    accounts = Accounts()
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), Any))
    accounts.register(0, results)
    journal: list[dict[str, Any]] = []
    history = RunHistory({0: "A.b"})
    directory: Any = SimpleNamespace(decide=journal.extend)
    nothing: Any = None
    clock: Any = FixedClock(at=NOW_S)
    services: Any = SimpleNamespace(
        pool=pool,
        controls=controls,
        accounts=accounts,
        history=history,
        journal=journal,
        port=RunPort(directory, accounts, history, nothing, nothing),
        limits=SimpleNamespace(wait_s=30.0),
        channel=SimpleNamespace(behind=False),
        clock=clock,
        load_clock=LoadClock(clock, accounts),
    )
    specification: Any = SimpleNamespace(workload=0, open=False, max_lag_s=1.0)
    wishes: Any = SimpleNamespace(users={})
    scenario: Any = SimpleNamespace(cls=Scenario)
    plan: Any = SimpleNamespace(
        number=0,
        name="A.b",
        title="A",
        runner=runner,
        data=None,
        workload=wishes,
        scenario=scenario,
        zones=NO_ZONES,
    )
    port: Any = SimpleNamespace()
    failover: Any = SimpleNamespace(replace=lambda _: None)
    return WorkloadRun(
        plan=plan,
        specification=specification,
        services=services,
        status=status,
        failover=failover,
        results=results,
        dispatcher=Dispatcher(port, results.ledger, 0),
        workers=WorkloadWorkers(pool, controls, 0, "A.b"),
        rules=StopRules(status, results, "A.b", lambda *_: None, abort_on_sla=False),
        hooks=hooks,
        progress=lambda _: None,
    )
