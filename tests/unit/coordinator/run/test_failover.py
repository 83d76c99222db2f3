"""A lost worker, step by step: fenced, its batches reclaimed, replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.errors import StoreAway
from osbench.coordinator.fleet.worker import LossReason, WorkerHandle, WorkerState
from osbench.coordinator.run.failover import Failover


class Desk:
    """A failover whose services note what they are asked for, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.workers = {name: WorkerHandle(heartbeat(name), workload=0) for name in ("w1", "w2")}
        self.away: set[str] = set()

        def noted(name: str, answer: Any = None) -> Any:
            def call(first: Any = None, **fields: Any) -> Any:
                if name in self.away:
                    raise StoreAway("Redis does not answer")
                self.calls.append((name, fields or first))
                return answer(first) if callable(answer) else answer

            return call

        services: Any = SimpleNamespace(
            directory=SimpleNamespace(decide=noted("journal")),
            channel=SimpleNamespace(fence=noted("fence", lambda name: f"nonce of {name}")),
            receiver=SimpleNamespace(fence=noted("results fenced")),
            pool=SimpleNamespace(
                workers=self.workers,
                forget=noted("queue deleted"),
                adopt=noted("adopt", lambda count: [WorkerHandle(heartbeat("w3"))] * count),
            ),
            controls=SimpleNamespace(change=noted("control")),
            limits=SimpleNamespace(lost_after_s=2.0),
        )
        self.dispatcher: Any = SimpleNamespace(reclaim=noted("reclaim"))
        self.failover = Failover(services)

    def fence(self, name: str) -> None:
        self.workers[name].silence_s = 2.5
        self.failover.detect(self.workers.values())
        self.failover.fence_read(f"nonce of {name}")

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_worker_is_fenced_once_it_was_silent_for_long(desk):
    desk.workers["w1"].silence_s = 2.0

    desk.failover.detect(desk.workers.values())
    desk.failover.detect(desk.workers.values())

    assert desk.calls == [("journal", [{"do": "fence", "worker": "w1"}]), ("fence", "w1")]
    assert [one.state for one in desk.workers.values()] == [
        WorkerState.FENCING,
        WorkerState.ACTIVE,
    ]
    assert desk.failover.unsettled(0)


def test_where_the_fence_cannot_be_sent_the_worker_stays_as_it_was_and_is_fenced_later(desk):
    desk.workers["w1"].record_protocol_error()
    desk.away = {"fence"}
    with pytest.raises(StoreAway):
        desk.failover.detect(desk.workers.values())

    assert desk.workers["w1"].state is WorkerState.ACTIVE
    desk.away = set()
    desk.failover.detect(desk.workers.values())

    assert desk.workers["w1"].state is WorkerState.FENCING
    assert desk.workers["w1"].loss_reason is LossReason.PROTOCOL_ERROR


def test_only_a_fence_that_was_sent_counts_and_only_once(desk):
    desk.workers["w1"].silence_s = 2.5
    desk.failover.detect(desk.workers.values())

    assert desk.failover.fence_read("of somebody else") is None
    assert desk.failover.fence_read("nonce of w1") is desk.workers["w1"]
    assert desk.failover.fence_read("nonce of w1") is None
    assert desk.names.count("results fenced") == 1


def test_batches_are_reclaimed_before_the_queue_is_deleted_and_the_worker_told(desk):
    desk.fence("w1")

    desk.failover.reclaim(0, desk.dispatcher)

    assert desk.names[-3:] == ["reclaim", "queue deleted", "control"]
    assert desk.calls[-1] == ("control", {"fenced": True})
    assert desk.workers["w1"].state is WorkerState.RECLAIMED
    assert not desk.failover.unsettled(0)


@pytest.mark.parametrize("away", ["reclaim", "queue deleted", "control"])
def test_reclaiming_goes_on_where_redis_was_away_in_the_middle(desk, away):
    desk.fence("w1")
    desk.away = {away}
    with pytest.raises(StoreAway):
        desk.failover.reclaim(0, desk.dispatcher)
    assert desk.failover.unsettled(0)
    desk.away = set()

    desk.failover.reclaim(0, desk.dispatcher)

    assert desk.workers["w1"].state is WorkerState.RECLAIMED


def test_workers_of_other_workloads_are_left_alone(desk):
    desk.workers["w2"].workload = 1
    desk.fence("w1")

    desk.failover.reclaim(1, desk.dispatcher)

    assert "reclaim" not in desk.names
    assert not desk.failover.unsettled(1)


def test_as_many_workers_are_adopted_as_are_lacking(desk):
    added: list[WorkerHandle] = []
    workers: Any = SimpleNamespace(lacking=2, add=added.append)

    desk.failover.replace(workers)

    assert ("adopt", 2) in desk.calls
    assert len(added) == 2


def test_no_worker_is_adopted_where_none_is_lacking(desk):
    workers: Any = SimpleNamespace(lacking=0)

    desk.failover.replace(workers)

    assert desk.calls == []
