"""Workers are split among workloads at once: enough for each, the rest by what is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.fleet.assignment import needs, split_workers
from osbench.coordinator.runners.constant import Constant
from osbench.coordinator.runners.rps import Rps
from osbench.coordinator.taskfile import parse


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
    workloads = [
        {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 50, "concurrency": n}}}
        for n in (4, 9)
    ]
    subtasks = [
        {"title": "one by one", "workloads": [*workloads, *workloads, *workloads]},
        {"title": "at once", "workloads": workloads, "run_in_parallel": True},
    ]
    plugins = Plugins()

    both = needs(parse({"version": 2, "title": "t", "subtasks": subtasks}, "-"), plugins)
    first = needs(parse({"version": 2, "title": "t", "subtasks": subtasks[:1]}, "-"), plugins)

    assert (both.workers, both.users, both.users_alone) == (2, 13, 9)
    assert (first.workers, first.users, first.users_alone) == (1, 9, 1)
