"""Workers that fall silent, come back, leave, and are replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.memberships import handle
from osbench.coordinator.fleet.worker import WorkerState
from osbench.coordinator.run.failover import Failover, loss_sentence


class Desk:
    """A failover of two workers whose decisions are noted."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, Any]] = []
        self.workers = {f"m-{name}": handle(name, share=3) for name in ("w1", "w2")}
        self.invited: list[int] = []
        self.idle: list[Any] = []
        pool = SimpleNamespace(workers=self.workers, idle=self.idle, invite=self.invited.append)
        services: Any = SimpleNamespace(
            port=SimpleNamespace(decide=self.decisions.extend),
            pool=pool,
            limits=SimpleNamespace(lost_after_s=3.0),
        )
        self.failover = Failover(services)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_who_is_silent_for_long_is_lost_and_the_journal_says_so(desk):
    desk.workers["m-w1"].silence_s = 3.0
    desk.workers["m-w2"].silence_s = 2.9

    lost = desk.failover.detect()

    assert lost == [desk.workers["m-w1"]]
    assert desk.decisions == [{"do": "lost", "mid": "m-w1"}, {"do": "again", "mid": "m-w1"}]
    assert desk.workers["m-w1"].state is WorkerState.LOST
    assert desk.failover.detect() == []


def test_who_is_heard_again_goes_on(desk):
    worker = desk.workers["m-w1"]
    worker.silence_s = 3.0
    desk.failover.detect()
    worker.silence_s = 0.0
    desk.decisions.clear()

    assert desk.failover.detect() == []

    assert worker.state is WorkerState.ACTIVE
    assert desk.decisions == [{"do": "heard", "mid": "m-w1"}]


def test_who_was_never_heard_by_this_coordinator_is_not_heard_again(desk):
    worker = desk.workers["m-w1"]
    worker.session = ""
    worker.declare_lost()

    desk.failover.detect()

    assert worker.state is WorkerState.LOST


def test_who_has_delivered_its_final_block_has_left_however_silent_it_is(desk):
    worker = desk.workers["m-w1"]
    worker.silence_s = 60.0
    worker.membership.final = worker.membership.acknowledged = 4

    assert desk.failover.detect() == []

    assert worker.state is WorkerState.LEFT
    assert desk.decisions == []


def test_idle_workers_take_the_place_of_those_that_lack(desk):
    desk.idle += [handle("w3"), handle("w4")]
    added: list[Any] = []
    workload: Any = SimpleNamespace(lacking=1, add=added.append)

    desk.failover.replace(workload)

    assert added == desk.idle[:1]


@pytest.mark.parametrize(("lacking", "invited"), [((2, 1), 2), ((-1, 0), 0), ((1, 0), 0)])
def test_as_many_are_invited_as_lack_and_are_not_there(desk, lacking, invited):
    desk.idle.append(handle("w3"))

    desk.failover.invite([SimpleNamespace(lacking=one) for one in lacking])  # type: ignore[misc]

    assert desk.invited == [invited]


def test_the_report_says_when_a_worker_fell_silent():
    assert loss_sentence(handle(), 7.0, 10.0) == (
        "worker h:7 fell silent 7 s into the load and was declared lost 3 s later"
    )
    assert loss_sentence(handle(), 0.0, -0.3) == "worker h:7 fell silent before the load"
