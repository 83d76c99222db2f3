"""The end of a run while Redis is away, and what is told of blocks that did not arrive."""

from __future__ import annotations

import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.memberships import handle
from osbench.common.errors import StoreUnreachable
from osbench.coordinator.load.fleet.worker import LeaveReason, WorkerHandle, WorkerState
from osbench.coordinator.load.run import release
from osbench.coordinator.load.run.disturbances import disturbances_of
from osbench.coordinator.report.run_outcome import Disturbances
from osbench.coordinator.results.accounting.accounts import Accounts


class EndingRun:
    """The services of a run that ends: Redis fails some times, then the worker leaves."""

    def __init__(self, worker: WorkerHandle, failures: int) -> None:
        self.worker, self.failures = worker, failures
        self.told = self.tended = 0
        self.closed = False
        #: Memberships that had left.
        self.left: list[str] = []
        self.checked = 0
        #: Waits for results, seconds.
        self.waits: list[float] = []
        self.clock_steps = SimpleNamespace(back_s=0.0, forward_s=0.0)

    def services(self) -> Any:
        pool = SimpleNamespace(
            workers={self.worker.mid: self.worker},
            invited={},
            poll=lambda: None,
            refused=0,
            clock_steps=self.clock_steps,
        )
        return SimpleNamespace(
            pool=pool,
            channel=SimpleNamespace(tend=self.tend, close=self.close, rollbacks=0, refusals={}),
            controls=SimpleNamespace(
                dismiss=lambda _: None, restate=lambda _: None, change=self.change
            ),
            receiver=SimpleNamespace(receive=self.receive),
            limits=SimpleNamespace(block_s=0.1),
            accounts=Accounts(),
            check=self.check,
        )

    def tend(self) -> None:
        self.tended += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnreachable("Redis does not respond")

    def change(self, workers: Any, *, over: bool) -> None:
        self.told += over
        self.worker.state = WorkerState.LEFT

    def close(self, offered: Any, left: list[str]) -> None:
        self.closed, self.left = True, left

    def check(self) -> None:
        self.checked += 1

    def receive(self, wait_s: float) -> list[Any]:
        self.waits.append(wait_s)
        return []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "AWAY_S", 0.0)


def test_a_redis_that_is_away_at_the_end_is_waited_for() -> None:
    run = EndingRun(handle(), failures=3)

    release.release(run.services(), 60.0)

    # its stream is made anew before the workers hear of the end, so that they can deliver
    assert (run.tended, run.checked, run.told, run.closed) == (4, 3, 1, True)


def test_results_are_not_waited_for_when_all_workers_have_left() -> None:
    run = EndingRun(handle(), failures=0)

    release.release(run.services(), 60.0)

    assert run.waits == [0.0]


def test_only_of_workers_that_have_left_the_end_is_forgotten_soon() -> None:
    gone, away = EndingRun(handle(), failures=0), EndingRun(handle(), failures=0)
    gone.worker.leave_reason = LeaveReason.GONE
    away.worker.state = WorkerState.LOST

    for run in (gone, away):
        release.release(run.services(), 60.0)

    assert (gone.left, away.left) == ([gone.worker.mid], [])


def test_the_end_is_told_once_more_when_the_time_for_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instants = iter([0.0, 0.0, 0.0, 1000.0])
    monkeypatch.setattr(release.time, "monotonic", lambda: next(instants))
    run = EndingRun(handle(), failures=0)
    monkeypatch.setattr(run, "change", lambda workers, *, over: setattr(run, "told", run.told + 1))

    release.release(run.services(), 60.0)

    assert run.told == 2


def test_nobody_waits_for_it_without_patience(caplog: pytest.LogCaptureFixture) -> None:
    run = EndingRun(handle(), failures=10)

    release.release(run.services(), 0.0)

    assert not run.closed
    assert "the run's keys could not be removed: Redis does not respond" in caplog.text


def test_blocks_that_did_not_arrive_are_counted_in_the_report() -> None:
    worker = handle("host.7.aa", made=5)
    worker.membership.note(1)
    worker.membership.note(3)
    run = EndingRun(worker, failures=0)

    assert disturbances_of(run.services()) == Disturbances(undelivered={"host.7.aa": 3})


def test_nothing_is_told_where_all_blocks_arrived() -> None:
    worker = handle(made=2)
    # the last one came after the last heartbeat
    for number in (1, 2, 3):
        worker.membership.note(number)

    assert disturbances_of(EndingRun(worker, failures=0).services()) == Disturbances()


def test_results_that_cannot_be_counted_are_told() -> None:
    services = EndingRun(handle(), failures=0).services()
    services.accounts.refused = 2

    refused = disturbances_of(services).refused

    assert refused == {"results of another shape, or of no workload": 2}


def test_wall_clocks_that_were_set_are_told_once_a_host():
    worker = handle()
    for number, set_s in ((2, [7.0, 0.0]), (3, [7.0 + 3600.0, 12.0])):
        worker.hear(replace(worker.beat, beat=number, host="rack-1", clock_set_s=set_s), 0.5, 1.0)
    run = EndingRun(worker, failures=0)
    run.clock_steps.back_s = 60.0

    steps = disturbances_of(run.services()).clock_steps

    assert steps == {socket.gethostname(): (60.0, 0.0), "rack-1": (3600.0, 12.0)}


def test_processes_of_a_host_and_the_coordinator_on_it_have_seen_the_same_steps():
    worker = handle()
    beat = replace(worker.beat, host=socket.gethostname())
    for number, set_s in ((2, [0.0, 0.0]), (3, [60.0, 0.0])):
        worker.hear(replace(beat, beat=number, clock_set_s=set_s), 0.5, 1.0)
    run = EndingRun(worker, failures=0)
    run.clock_steps.back_s = 60.0

    steps = disturbances_of(run.services()).clock_steps

    assert steps == {socket.gethostname(): (60.0, 0.0)}
