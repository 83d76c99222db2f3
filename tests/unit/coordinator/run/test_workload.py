"""One workload among others: what comes after its end changes nothing of it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from osbench.common.plugin.runner import Step
from osbench.common.protocol.store import MemoryStore
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.run.workload import Conductor
from osbench.coordinator.sla.evaluator import Criteria


class Timed:
    """A runner that stops the load after a second, and counts how often it is asked."""

    planned = None
    concurrency = 2

    def __init__(self) -> None:
        self.asked = 0

    def step(self, *_: object) -> Step:
        self.asked += 1
        return Step(shares=(), stop_s=1.0)

    def users(self, _: float) -> int:
        return 2


def conductor(runner: Any, hooks: Any) -> Conductor:
    store = MemoryStore()
    store.open({"epoch": "e", "boot": "b"})
    state: Any = SimpleNamespace(
        reader=SimpleNamespace(books={}, buried=[]),
        fleet=SimpleNamespace(members={}),
        channel=SimpleNamespace(run_id="r", epoch="e", store=store),
        controls=SimpleNamespace(write=lambda _: None, change=lambda *_, **__: None),
        directory=SimpleNamespace(decide=lambda _: None),
        offset=SimpleNamespace(now_s=lambda: 100.0),
        interruption=SimpleNamespace(level=0),
        batch_ids=itertools.count(1),
        stopped_for=None,
        abort_on_sla=False,
        losses=[],
    )
    specification: Any = SimpleNamespace(workload=0, scenario="A.b", open=False, max_lag_s=1.0)
    book = Book(idempotent=False, criteria=Criteria((), None))
    return Conductor(state, specification, runner, book=book, progress=lambda _: None, hooks=hooks)


def test_a_run_that_breaks_later_leaves_a_settled_workload_as_it_was():
    runner, stopped = Timed(), []
    hooks = SimpleNamespace(look=lambda *_: None, stop=lambda: stopped.append(True))
    one = conductor(runner, hooks)
    one.start(90.0)
    one.settle()
    asked, offered = runner.asked, one.offered()

    one.abandon()

    assert runner.asked == asked
    assert one.offered() == offered
    # its hooks may run on until the workloads beside it have ended
    assert stopped == [True]


def test_a_run_that_breaks_under_load_closes_the_accounts():
    runner = Timed()
    hooks = SimpleNamespace(look=lambda *_: None, stop=lambda: None)
    one = conductor(runner, hooks)
    one.start(99.5)
    one.book.ledger.cut(1, "w", one.book.ledger.allot(5, 10))

    one.abandon()

    assert runner.asked == 2
    assert one.book.ledger.closed
