"""Workers are split among workloads at once: enough for each, the rest by what is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.memberships import handle
from osbench.common.errors import FleetError
from osbench.coordinator.fleet.assignment import divide, needs, split_workers
from osbench.coordinator.runners.constant import Constant
from osbench.coordinator.runners.rps import Rps


def closed(users):
    return Constant({"times": 10_000, "concurrency": users})


OPEN = Rps({"times": 100, "rps": 10})


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=12),
    st.lists(st.integers(1, 60).map(closed) | st.just(OPEN), min_size=1, max_size=5),
)
def test_every_worker_has_one_workload_and_every_workload_enough(capacities, runners):
    found = split_workers(capacities, runners)

    if found is None:
        # no more than the least that is asked could be missing: each may waste most of a worker
        needed = sum(1 if runner.OPEN else runner.concurrency for runner in runners)
        assert len(capacities) < len(runners) or sum(capacities) < needed + max(capacities) * len(
            runners
        )
        return
    assert sorted(worker for part in found for worker in part) == list(range(len(capacities)))
    for workers, runner in zip(found, runners, strict=True):
        assert workers
        if not runner.OPEN:
            assert sum(capacities[worker] for worker in workers) >= runner.concurrency


@pytest.mark.parametrize(
    ("workers", "runners", "sizes"),
    [
        (4, [closed(10), closed(10)], [2, 2]),
        (4, [closed(30), closed(10)], [3, 1]),
        (6, [closed(20), OPEN], [3, 3]),
        (3, [OPEN, OPEN], [2, 1]),
        (3, [closed(100), closed(1)], [2, 1]),
        (2, [closed(100), closed(1)], None),
        (1, [OPEN, OPEN], None),
    ],
)
def test_workers_follow_what_is_asked(workers, runners, sizes):
    found = split_workers([64] * workers, runners)

    assert (found and [len(part) for part in found]) == sizes


def test_what_a_task_needs_is_that_of_its_largest_group():
    alone = [[closed(4)], [closed(9)], [closed(4)]]

    both = needs([*alone, [closed(4), closed(9)]])
    first = needs(alone)

    assert (both.workers, both.users, both.users_alone) == (2, 13, 9)
    assert (first.workers, first.users, first.users_alone) == (1, 9, 1)


def test_an_open_runner_needs_one_user():
    assert needs([[OPEN]]).users == 1


def test_too_few_workers_for_workloads_at_once_are_refused_with_what_is_asked_and_there():
    workers = [handle(name, capacity=8) for name in ("w1", "w2")]

    with pytest.raises(FleetError) as raised:
        divide(workers, "Both", [("A.a", closed(20)), ("B.b", OPEN)])

    assert "Both: its workloads run at once" in str(raised.value)
    assert "(A.a 20, B.b any number); the 2 workers have 8, 8" in str(raised.value)
