"""Parallel work: each item once, failures counted, stopped at any time."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.openstack.seeding.parallel_work import ParallelWork
from servers.child import PATIENCE_S


@given(
    items=st.integers(0, 60),
    failing=st.sets(st.integers(0, 59)),
    at_once=st.integers(1, 8),
    give_up=st.integers(1, 70),
)
def test_every_item_is_in_one_place(
    items: int, failing: set[int], at_once: int, give_up: int
) -> None:
    calls: list[int] = []

    def call(item: int) -> None:
        calls.append(item)
        if item in failing:
            raise ValueError(item)

    work = ParallelWork(range(items), call, at_once=at_once, give_up=give_up)
    work.start()

    assert work.wait(PATIENCE_S)
    failed = [item for item, _ in work.failed]
    assert sorted([*work.done, *failed, *work.waiting]) == list(range(items))
    assert sorted(calls) == sorted([*work.done, *failed])
    assert set(failed) <= failing
    assert work.gave_up == bool(work.waiting)
    # one failure fewer than it takes is no reason to stop
    if len(failing) < give_up:
        assert not work.gave_up


def test_calls_in_flight_are_known_when_it_is_closed() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def call(item: int) -> None:
        begun.release()
        go_on.wait(PATIENCE_S)

    work = ParallelWork(range(9), call, at_once=3, give_up=1)
    work.start()
    for _ in range(3):
        assert begun.acquire(timeout=PATIENCE_S)
    work.stop()
    left = work.close()
    go_on.set()

    assert work.wait(PATIENCE_S)
    # the later results of calls that were given up do not count twice
    assert (sorted(left), work.done, work.failed) == ([0, 1, 2], [], [])
    assert list(work.waiting) == list(range(3, 9))
