"""One workload among others: what comes after its end changes nothing of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.fixed_clock import FixedClock
from helpers.memberships import handle
from osbench.common.plugin.runner import Runner, Step
from osbench.common.plugin.scenario import Scenario
from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.fleet.worker import LeaveReason, Readiness, WorkerHandle
from osbench.coordinator.results.accounts import Accounts
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.stop_rules import StopRules
from osbench.coordinator.run.workload import WorkloadRun
from osbench.coordinator.run.workload_workers import WorkloadWorkers
from osbench.coordinator.sla.evaluator import SlaEvaluator

NOW_S = 100.0


class Timed(Runner):
    """A closed runner that stops the load after a second, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__({"concurrency": 2})
        self.times = 0

    def step(self, *_: object) -> Step:
        self.times += 1
        return Step(shares=(), stop_s=1.0)

    def users(self, _: float) -> int:
        return 2


def workload(runner: Any, hooks: Any, status: RunStatus | None = None) -> WorkloadRun:
    status = status or RunStatus()
    pool: Any = SimpleNamespace(serving=lambda _: [], workers={}, watched_s=0.0)
    controls: Any = SimpleNamespace(write=lambda _: None, change=lambda *_, **__: None)
    accounts = Accounts()
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), Any))
    accounts.register(0, results)
    journal: list[dict[str, Any]] = []

    def decide(records: Any) -> None:
        for record in records:
            journal.append(record)
            accounts.apply(record)

    services: Any = SimpleNamespace(
        pool=pool,
        controls=controls,
        accounts=accounts,
        journal=journal,
        port=SimpleNamespace(decide=decide),
        limits=SimpleNamespace(wait_s=30.0),
        channel=SimpleNamespace(behind=False),
        clock=FixedClock(at=NOW_S),
    )
    specification: Any = SimpleNamespace(workload=0, open=False, max_lag_s=1.0)
    wishes: Any = SimpleNamespace(users={})
    scenario: Any = SimpleNamespace(cls=Scenario)
    plan: Any = SimpleNamespace(
        number=0, name="A.b", runner=runner, data=None, workload=wishes, scenario=scenario
    )
    port: Any = SimpleNamespace()
    failover: Any = None
    return WorkloadRun(
        plan=plan,
        specification=specification,
        services=services,
        status=status,
        failover=failover,
        results=results,
        dispatcher=Dispatcher(port, results.ledger, 0, is_open=False, max_lag_s=1.0),
        workers=WorkloadWorkers(pool, controls, 0, "A.b"),
        rules=StopRules(status, results, "A.b", abort_on_sla=False),
        hooks=hooks,
        progress=lambda _: None,
    )


def test_a_run_that_breaks_later_leaves_a_settled_workload_as_it_was():
    runner, stopped = Timed(), []
    hooks = SimpleNamespace(look=lambda *_: None, stop=lambda: stopped.append(True))
    one = workload(runner, hooks)
    one.start(90.0)
    one.settle()
    times, offered = runner.times, one.offered()

    one.abandon(resumable=False)

    assert runner.times == times
    assert one.offered() == offered
    # its hooks may run on until the workloads next to it have ended
    assert stopped == [True]


@pytest.mark.parametrize(("resumable", "written"), [(False, ["start", "close"]), (True, ["start"])])
def test_a_run_that_breaks_under_load_closes_the_ledger(resumable, written):
    runner = Timed()
    hooks = SimpleNamespace(look=lambda *_: None, stop=lambda: None)
    one = workload(runner, hooks)
    one.start(99.5)
    one.results.ledger.cut("w", 1, one.results.ledger.allot(5, 10))

    one.abandon(resumable=resumable)

    assert runner.times == 2
    assert one.results.ledger.closed
    # one that another coordinator may go on with has not ended, for the journal
    assert [record["do"] for record in one.services.journal] == written


def test_a_worker_that_is_told_of_a_load_can_prepare_it_anew():
    one, worker = workload(Timed(), SimpleNamespace(look=lambda *_: None)), handle("w", share=2)
    one.start(90.0)
    worker.readiness = Readiness.READY
    written: list[dict[WorkerHandle, dict[str, Any]]] = []
    one.services.controls.write = written.append
    one.services.pool.serving = lambda _: [worker]
    one.workers.specification = b"digest"

    one._write_controls()

    assert [changes[worker]["specification"] for changes in written] == [b"digest"]


def lost(silence_s: float, users: int) -> WorkerHandle:
    worker = handle(share=users, silence_s=silence_s)
    worker.declare_lost()
    return worker


@pytest.mark.parametrize(
    ("begun_at", "worker", "user_s", "sentence"),
    [
        (
            90.0,
            lost(3.0, 4),
            # the load stopped a second after it began, long before the silence
            0.0,
            "A.b: worker h:7 fell silent 7 s into the load and was declared lost 3 s later",
        ),
        (
            99.5,
            lost(0.25, 4),
            1.0,
            "A.b: worker h:7 fell silent 0 s into the load and was declared lost 0 s later",
        ),
    ],
)
def test_the_users_of_a_lost_worker_are_missing_until_the_stop_and_it_is_reported(
    begun_at, worker, user_s, sentence
):
    status = RunStatus()
    one = workload(Timed(), SimpleNamespace(), status)
    one.start(begun_at)
    # what the load itself lacked: there is no worker
    before = one._missing.user_s

    one.record_lost(worker)

    assert one._missing.user_s - before == pytest.approx(user_s)
    assert status.losses == [sentence]


def test_a_worker_that_is_lost_before_the_load_is_reported_as_such():
    status = RunStatus()
    one = workload(Timed(), SimpleNamespace(), status)

    one.record_lost(lost(3.0, 0))

    assert status.losses == ["A.b: worker h:7 fell silent before the load"]


def test_a_worker_that_is_lost_after_the_end_of_its_workload_is_none_of_it():
    status = RunStatus()
    one = workload(Timed(), SimpleNamespace(look=lambda *_: None), status)
    one.start(90.0)
    one.settle()

    one.record_lost(lost(3.0, 4))

    assert status.losses == []


def under_load() -> tuple[WorkloadRun, WorkerHandle]:
    """A load whose time is over, and a worker of it that has an iteration."""
    one = workload(Timed(), SimpleNamespace(look=lambda *_: None))
    one.start(90.0)
    worker = handle("w", got=1)
    worker.membership.seq = 1
    one.services.pool.workers["m-w"] = worker
    one.results.ledger.cut("w", 1, one.results.ledger.allot(1, 10))
    one.rules.apply(one._step, 10.0)
    return one, worker


def test_a_load_ends_when_nobody_has_anything_any_more():
    one, _ = under_load()
    assert not one.finished()

    one.results.ledger.consent("w")

    assert one.finished()


def finished_after(one: WorkloadRun, *watched_s: float) -> list[bool]:
    """Whether a load is over after so many seconds of polls that Redis answered."""
    found = []
    for seconds in watched_s:
        one.services.pool.watched_s = seconds
        found.append(one.finished())
    return found


@pytest.mark.parametrize("state", ["busy", "queued"])
def test_a_load_waits_for_a_worker_that_is_heard_and_has_work(state):
    one, worker = under_load()
    worker.beat = handle("w", got=1, **{state: 1}).beat

    assert not any(finished_after(one, 0.0, 100.0, 200.0, 300.0))


def test_a_load_does_not_wait_for_ever_for_what_nobody_has():
    one, _ = under_load()

    assert finished_after(one, 50.0, 59.0, 61.0) == [False, False, True]


def test_a_load_waits_longer_for_results_that_are_there_to_be_read_but_not_for_ever():
    one, _ = under_load()
    one.services.channel.behind = True

    assert finished_after(one, 50.0, 61.0, 79.0, 81.0) == [False, False, False, True]


def test_a_load_does_not_wait_for_ever_for_a_worker_that_is_lost():
    one, worker = under_load()
    worker.beat = handle("w", got=1, busy=1).beat
    worker.declare_lost()

    assert finished_after(one, 50.0, 61.0) == [False, True]


def test_who_left_of_its_own_accord_is_reported_only_where_it_is_lost():
    one, worker = under_load()
    worker.leave_reason = LeaveReason.GONE
    worker.declare_lost()

    one.record_lost(worker)

    assert one.status.losses == []
