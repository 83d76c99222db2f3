"""The workers of one workload: preparation, and the spans that count for it."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.memberships import handle
from osbench.common.errors import ContextError
from osbench.coordinator.load.fleet.worker import Readiness, WorkerHandle
from osbench.coordinator.load.run.workload.workload_workers import WorkloadWorkers


def worker(name: str, **fields: Any) -> WorkerHandle:
    return handle(name, readiness=Readiness.PENDING, **fields)


class Desk:
    """A workload with some workers, whose control records are not written."""

    def __init__(self, *workers: WorkerHandle) -> None:
        self.handles = {one.incarnation: one for one in workers}
        pool: Any = SimpleNamespace(workers=self.handles, serving=self.serving)
        controls: Any = SimpleNamespace(change=lambda *_, **__: None)
        self.workers = WorkloadWorkers(pool, controls, 0, "A.b")

    def serving(self, workload: int) -> list[WorkerHandle]:
        return [one for one in self.handles.values() if one.present and one.workload == workload]

    def hear(self, name: str, **fields: Any) -> None:
        handle = self.handles[name]
        handle.hear(
            replace(handle.beat, beat=handle.beat.beat + 1, **fields), 0.5, time.monotonic()
        )


def test_spans_count_from_where_they_were_when_the_workload_began():
    desk = Desk(worker("w1", spans=[100, 5, 0]))
    desk.workers.begin()

    desk.hear("w1", spans=[130, 6, 0])

    assert desk.workers.spans() == (30, 1)


def test_a_worker_that_joins_late_brings_none_of_its_earlier_spans():
    desk = Desk(worker("w1", spans=[0, 0, 0]))
    desk.workers.begin()
    late = desk.handles["w2"] = worker("w2", spans=[1000, 7, 0])

    desk.workers.add(late)
    desk.hear("w2", spans=[1020, 7, 0])

    assert desk.workers.spans() == (20, 0)
    assert [one.incarnation for one in desk.workers.served] == ["w1", "w2"]


def test_spans_after_the_next_workload_began_are_not_counted():
    desk = Desk(worker("w1", spans=[0, 0, 0]))
    desk.workers.begin()
    desk.hear("w1", spans=[10, 0, 0])

    desk.workers.freeze_spans()
    desk.hear("w1", spans=[90, 3, 0])

    assert desk.workers.spans() == (10, 0)


def test_workers_are_ready_once_they_report_this_workload_of_this_run():
    desk = Desk(worker("w1"), worker("w2"))
    desk.workers.begin()
    desk.hear("w1", prepared=0)
    desk.hear("w2", prepared=0, membership="another")

    desk.workers.note_prepared(strict=True)

    assert not desk.workers.ready
    assert [one.incarnation for one in desk.workers.takers] == ["w1"]
    assert desk.workers.delay() == "A.b was not prepared on h"


def test_a_worker_that_cannot_prepare_ends_the_workload_before_the_load_and_is_unused_under_it():
    desk = Desk(worker("w1"))
    desk.workers.begin()
    desk.hear("w1", prepared=0, problem="no such plug-in")

    with pytest.raises(ContextError, match=r"worker h \(pid 7\): no such plug-in"):
        desk.workers.note_prepared(strict=True)
    desk.workers.note_prepared(strict=False)

    assert desk.handles["w1"].readiness is Readiness.FAILED
    assert desk.workers.takers == []


def test_a_worker_that_leaves_is_lacking():
    desk = Desk(worker("w1"), worker("w2"))
    desk.workers.begin()

    desk.hear("w1", state="draining")

    assert desk.workers.lacking == 1
