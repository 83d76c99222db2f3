"""One workload among others: what comes after its end changes nothing of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.loads import Timed, workload
from helpers.memberships import handle
from osbench.coordinator.load.fleet.worker import Readiness, WorkerHandle


def test_a_run_that_breaks_later_leaves_a_settled_workload_as_it_was():
    runner, stopped = Timed(), []
    hooks = SimpleNamespace(look=lambda *_: None, stop=lambda: stopped.append(True))
    one = workload(runner, hooks)
    one.start(90.0)
    one.settle()
    times, offered = runner.times, one.view.offered()

    one.abandon(resumable=False)

    assert runner.times == times
    assert one.view.offered() == offered
    # its hooks may run on until the workloads next to it have ended
    assert stopped == [True]


@pytest.mark.parametrize(
    ("resumable", "written"), [(False, ["start", "held", "close"]), (True, ["start"])]
)
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
    one, worker = (
        workload(Timed(), SimpleNamespace(look=lambda *_: None)),
        handle("w", user_limit=2),
    )
    one.start(90.0)
    worker.readiness = Readiness.READY
    written: list[dict[WorkerHandle, dict[str, Any]]] = []
    one.services.controls.write = written.append
    one.services.pool.serving = lambda _: [worker]
    one.workers.specification = b"digest"

    one._write_controls()

    assert [changes[worker]["specification"] for changes in written] == [b"digest"]


def test_a_worker_that_serves_the_load_no_more_is_asked_for_what_it_holds():
    one = workload(Timed(), SimpleNamespace(look=lambda *_: None))
    one.start(90.0)
    stray, idle = handle("w1", workload=-1), handle("w2", workload=-1)
    one.results.ledger.cut("w1", 1, one.results.ledger.allot(5, 10))
    stray.membership.seq = 1
    one.services.pool.present = [stray, idle]
    told: list[WorkerHandle] = []
    one.services.controls.change = lambda workers, **_: told.extend(workers)

    one.run_pass(poll=True)

    assert (stray.recall, idle.recall) == ({1}, set())
    assert told == [stray]
