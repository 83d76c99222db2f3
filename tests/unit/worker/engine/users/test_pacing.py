"""Turns of users whose rate is limited."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from osbench.coordinator.load.fleet.zones import NO_ZONES
from osbench.coordinator.load.run.workload.user_allocation import ClosedUserAllocation
from osbench.worker.engine.users import pacing
from osbench.worker.engine.users.pacing import Pacing


def test_the_first_turn_is_at_once_also_where_the_clock_is_younger_than_an_interval(monkeypatch):
    # the clock may count from the start of the machine
    monkeypatch.setattr(pacing, "monotonic_ns", lambda: 5_000_000_000)
    limited = Pacing()
    limited.set_rate(0.01)

    waits = []
    turns = limited.turns(0, 0)
    try:
        while len(waits) < 3:
            waits.append(next(turns))
    except StopIteration as had:
        assert had.value == 5_000_000_000

    assert waits == []


class Clock:
    """A monotonic clock that stands still but for waits, nanoseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(pacing, "monotonic_ns", lambda: self.now)

    def turn(self, limited: Pacing, free_ns: int) -> int:
        """The next turn of a user that is free at an instant."""
        self.now = max(self.now, free_ns)
        turns = limited.turns(0, free_ns)
        while True:
            try:
                self.now = max(self.now, next(turns))
            except StopIteration as taken:
                return int(taken.value)


def test_a_turn_that_came_late_shifts_none_of_the_later_ones(monkeypatch):
    clock, limited = Clock(monkeypatch), Pacing()
    limited.set_rate(10, 1_000_000_000)

    found = [clock.turn(limited, free) for free in (0, 0, 1_230_000_000, 0, 1_777_000_000, 0)]

    assert [at // 1_000_000 for at in found] == [1000, 1100, 1230, 1300, 1800, 1900]


@pytest.mark.parametrize("users", [(4,), (2, 2), (1, 1, 1, 1), (7, 1), (5, 4, 4), (2, 0, 1)])
def test_starts_of_all_workers_are_at_an_even_distance(monkeypatch, users):
    starts = []
    workers = [
        SimpleNamespace(mid=str(at), user_limit=count, pace=0.0, pace_part=())
        for at, count in enumerate(users)
    ]
    workload, runner = SimpleNamespace(users={"max_rate": 2}), SimpleNamespace(concurrency=9)
    plan = SimpleNamespace(workload=workload, runner=runner, zones=NO_ZONES)
    load = SimpleNamespace(plan=plan, elapsed=lambda: -1.0)
    ClosedUserAllocation(load)._pace(workers)  # type: ignore[arg-type]
    for worker in workers:
        clock, limited = Clock(monkeypatch), Pacing()
        limited.set_rate(worker.pace, 0, worker.pace_part)
        while worker.user_limit and clock.now < 40_000_000_000:
            starts.append(clock.turn(limited, 0))

    starts.sort()
    # one after another, whatever parts of the users the workers have
    assert [at for at in starts if at < 30_000_000_000] == [n * 500_000_000 for n in range(60)]


def test_turns_of_a_process_among_many_are_spread(monkeypatch):
    clock, limited = Clock(monkeypatch), Pacing()
    limited.set_rate(100, 0, (30, 40, 100, 0))

    found = [clock.turn(limited, 0) for _ in range(100)]

    apart = [(after - before) / 1e9 for before, after in itertools.pairwise(found)]
    assert sum(apart) / len(apart) == pytest.approx(0.1, rel=0.02)
    assert min(apart) >= 0.05
    assert max(apart) < 0.2


def test_another_part_holds_from_its_turn_on(monkeypatch):
    """Two processes, of which one has all users at first, hear of it at different times."""
    starts = []
    for first, second, heard_s in (
        ((0, 1, 1, 0), (0, 1, 2, 5), 1),
        ((0, 0, 1, 0), (1, 2, 2, 5), 4),
    ):
        clock, limited = Clock(monkeypatch), Pacing()
        limited.set_rate(1, 0, first)
        if first[0] < first[1]:
            starts += [clock.turn(limited, 0) for _ in range(heard_s)]
        limited.set_rate(1, 0, second)
        clock.now = max(clock.now, heard_s * 1_000_000_000)
        while clock.now < 20_000_000_000:
            starts.append(clock.turn(limited, 0))

    starts.sort()
    assert [at for at in starts if at < 19_000_000_000] == [n * 1_000_000_000 for n in range(19)]


def test_a_user_that_waits_no_longer_gives_its_turn_back(monkeypatch):
    clock, limited = Clock(monkeypatch), Pacing()
    limited.set_rate(1, 1_000_000_000)
    clock.turn(limited, 0)
    waits = limited.turns(0, 0)
    next(waits)

    waits.close()

    assert clock.turn(limited, 0) == 2_000_000_000
