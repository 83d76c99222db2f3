"""The end of a load: whom it waits for, and for how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from helpers.loads import Timed, workload
from helpers.memberships import handle
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun


def under_load() -> tuple[WorkloadRun, WorkerHandle]:
    """A load whose time is over, and a worker of it that has an iteration."""
    one = workload(Timed(), SimpleNamespace(look=lambda *_: None))
    one.start(90.0)
    worker = handle("w", got=1)
    worker.membership.seq = 1
    one.services.pool.workers["m-w"] = worker
    one.results.ledger.cut("w", 1, one.results.ledger.allot(1, 10))
    one.rules.apply(one.allocation.step, 10.0)
    return one, worker


def test_a_load_ends_when_nobody_has_anything_any_more():
    one, _ = under_load()
    assert not one.ending.finished()

    one.results.ledger.consent("w")

    assert one.ending.finished()


def finished_after(one: WorkloadRun, *watched_s: float) -> list[bool]:
    """Whether a load is over after so many seconds of polls that Redis answered."""
    found = []
    for seconds in watched_s:
        one.services.pool.watched_s = seconds
        found.append(one.ending.finished())
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
