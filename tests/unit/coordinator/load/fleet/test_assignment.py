"""Workers are split among workloads at once: enough for each, the rest by what is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.memberships import handle
from osbench.common.errors import FleetError
from osbench.coordinator.load.fleet.assignment import AskedUsers, divide, needs, split_workers


def closed(users, *, coroutines=False):
    return AskedUsers(name="A.a", count=users, is_open=False, coroutines=coroutines)


OPEN = AskedUsers(name="B.b", count=1, is_open=True, coroutines=False)


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=12),
    st.lists(st.integers(1, 60).map(closed) | st.just(OPEN), min_size=1, max_size=5),
)
def test_every_worker_has_one_workload_and_every_workload_enough(capacities, asked):
    found = split_workers([[one] * len(asked) for one in capacities], asked)

    if found is None:
        # no more than the least that is asked could be missing: each may waste most of a worker
        needed = sum(one.count for one in asked)
        most = max(capacities)
        assert len(capacities) < len(asked) or sum(capacities) < needed + most * len(asked)
        return
    assert sorted(worker for part in found for worker in part) == list(range(len(capacities)))
    for workers, one in zip(found, asked, strict=True):
        assert sum(capacities[worker] for worker in workers) >= one.count


@pytest.mark.parametrize(
    ("workers", "asked", "sizes"),
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
def test_workers_follow_what_is_asked(workers, asked, sizes):
    found = split_workers([[64] * len(asked)] * workers, asked)

    assert (found and [len(part) for part in found]) == sizes


def test_what_a_task_needs_is_that_of_its_largest_group():
    alone = [[closed(4)], [closed(9)], [closed(4)]]

    both = needs([*alone, [closed(4), closed(9)]])
    first = needs(alone)

    assert (both.workers, both.users, both.threads_alone) == (2, 13, 9)
    assert (first.workers, first.users, first.threads_alone) == (1, 9, 1)


def test_an_open_runner_needs_one_user():
    assert needs([[OPEN]]).users == 1


def test_too_few_workers_for_workloads_at_once_are_refused_with_what_is_asked_and_there():
    workers = [handle(name, capacity=8) for name in ("w1", "w2")]

    with pytest.raises(FleetError) as raised:
        divide(workers, "Both", [closed(20), OPEN])

    assert "Both: its workloads run at once" in str(raised.value)
    assert "(A.a 20, B.b any number); the 2 workers have 8, 8" in str(raised.value)


def test_coroutines_need_no_room_for_threads():
    group = [closed(500, coroutines=True), closed(6)]
    workers = [handle(name, capacity=8, coroutines=1000) for name in ("w1", "w2")]

    found = needs([group])

    assert (found.users, found.threads, found.coroutines) == (506, 6, 500)
    assert found.threads_alone == 6
    assert [len(part) for part in divide(workers, "Both", group)] == [1, 1]
