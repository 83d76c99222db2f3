"""Workers that fall silent, come back, leave, and are replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.fixed_clock import FixedClock
from helpers.memberships import handle
from osbench.coordinator.load.fleet.worker import LeaveReason, WorkerState
from osbench.coordinator.load.run.failover import Failover
from osbench.coordinator.load.run.load_clock import LoadClock
from osbench.coordinator.results.accounting.accounts import Accounts


class Desk:
    """A failover of two workers whose decisions are noted."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, Any]] = []
        self.workers = {f"m-{name}": handle(name, user_limit=3) for name in ("w1", "w2")}
        self.invited: list[int] = []
        self.idle: list[Any] = []
        pool = SimpleNamespace(
            workers=self.workers,
            idle=self.idle,
            newcomers=self.idle,
            staying=self.workers.values(),
            invite=self.invited.append,
        )
        services: Any = SimpleNamespace(
            port=SimpleNamespace(decide=self.decisions.extend),
            pool=pool,
            limits=SimpleNamespace(lost_after_s=3.0),
            load_clock=LoadClock(FixedClock(at=110.0), Accounts()),  # type: ignore[arg-type]
        )
        services.load_clock.begin(0, 100.0)
        self.failover = Failover(services)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_who_is_silent_for_long_is_lost_and_the_journal_says_so(desk):
    desk.workers["m-w1"].silence_s = 3.0
    desk.workers["m-w2"].silence_s = 2.9

    desk.failover.detect()
    desk.failover.detect()

    assert desk.decisions == [
        {
            "do": "lost",
            "mid": "m-w1",
            "workload": 0,
            "at_s": 10.0,
            "silent_s": 3.0,
            "users": 3,
            "host": "h",
            "pid": 7,
            "label": "",
        },
        {"do": "again", "mid": "m-w1"},
    ]
    assert desk.workers["m-w1"].state is WorkerState.LOST
    assert desk.workers["m-w2"].state is WorkerState.ACTIVE


def test_nothing_is_told_of_who_left_of_its_own_accord_and_is_lost(desk):
    worker = desk.workers["m-w1"]
    worker.silence_s, worker.leave_reason = 3.0, LeaveReason.GONE

    desk.failover.detect()

    assert desk.decisions[0] == {"do": "lost", "mid": "m-w1"}


def test_who_is_heard_again_goes_on(desk):
    worker = desk.workers["m-w1"]
    worker.silence_s = 3.0
    desk.failover.detect()
    worker.silence_s = 0.0
    desk.decisions.clear()

    desk.failover.detect()

    assert worker.state is WorkerState.ACTIVE
    assert desk.decisions == [{"do": "heard", "mid": "m-w1", "at_s": 10.0}]


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

    desk.failover.detect()

    assert worker.state is WorkerState.LEFT
    assert desk.decisions == []


def test_idle_workers_take_the_place_of_those_that_lack(desk):
    desk.idle += [handle("w3", label="rack"), handle("w4")]
    added: list[Any] = []
    workload: Any = SimpleNamespace(lacking=1, add=added.append, workload=0)

    desk.failover.replace(workload)

    assert added == desk.idle[:1]
    event = {"do": "joined", "mid": "m-w3", "workload": 0, "at_s": 10.0}
    assert desk.decisions == [{**event, "host": "h", "pid": 7, "label": "rack"}]


@pytest.mark.parametrize(("lacking", "invited"), [((2, 1), 2), ((-1, 0), 0), ((1, 0), 0)])
def test_as_many_are_invited_as_lack_and_are_not_there(desk, lacking, invited):
    desk.idle.append(handle("w3"))

    desk.failover.invite({_Load(lacking=one): 9 for one in lacking})

    assert desk.invited == [invited]


@pytest.mark.parametrize(
    ("most_workers", "useful", "invited"), [(6, (9, 9), 4), (3, (9, 9), 1), (6, (1, 2), 1)]
)
def test_as_many_are_invited_as_may_join_and_are_of_use(desk, most_workers, useful, invited):
    desk.failover.most_workers = most_workers
    loads = {_Load(count=1): most for most in useful}

    desk.failover.invite(loads)

    assert desk.invited == [invited]


def test_a_new_worker_joins_the_load_with_the_fewest_that_can_use_it(desk):
    desk.idle += [handle("w3"), handle("w4"), handle("w5")]
    full, small, large = _Load(count=1), _Load(count=1, workload=1), _Load(count=2, workload=2)

    desk.failover.enlist({full: 1, large: 9, small: 3})

    assert [one.name for one in small.added] == ["w3", "w5"]
    assert [one.name for one in large.added] == ["w4"]
    assert [(one["do"], one["mid"], one["workload"], one["more"]) for one in desk.decisions] == [
        ("joined", "m-w3", 1, True),
        ("joined", "m-w4", 2, True),
        ("joined", "m-w5", 1, True),
    ]


def test_nobody_joins_a_load_while_another_lacks_workers(desk):
    desk.idle.append(handle("w3"))

    desk.failover.enlist({_Load(): 9, _Load(lacking=1): 9})

    assert not desk.decisions


class _Load:
    """Workers of a workload, to which further ones are added."""

    def __init__(self, lacking: int = 0, count: int = 1, workload: int = 0) -> None:
        self.lacking, self.workload = lacking, workload
        self.added: list[Any] = []
        self._count = count

    @property
    def count(self) -> int:
        return self._count + len(self.added)

    def add(self, worker: Any) -> None:
        self.added.append(worker)
