"""Clocks of hosts that are wrong, or set under load, and the common start of distant workers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.net_hosts.faked_clock import FakedClock, faketime_library
from helpers.net_hosts.net_cluster import WORKERS, NetCluster, Verdict, net_cluster
from helpers.net_hosts.network import need_hosts
from helpers.net_hosts.switch import Cable
from servers import redis_executable

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

FIRST, SECOND = WORKERS
RATE = 100
SECONDS = 3
OPEN = {"rps": {"times": RATE * SECONDS, "rps": RATE}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[NetCluster]:
    need_hosts()
    with net_cluster() as found:
        yield found


@pytest.fixture
def clocks(tmp_path: Path) -> dict[str, FakedClock]:
    return {name: FakedClock(tmp_path / name) for name in WORKERS}


def is_right(verdict: Verdict, code: int = 0) -> None:
    """All arrivals were started, at the instants of the plan, and the report shows it."""
    assert not verdict.problems, (verdict.problems, verdict.notes)
    assert verdict.done.code == code, verdict.notes
    sums = verdict.sums
    assert sums["ok"] + sums["not_started"] == sums["planned"]
    due = sorted(float(row["due_s"]) * RATE for row in verdict.rows if row["outcome"] == "ok")
    # those of an interrupted load may have a gap where arrivals were returned
    assert due == pytest.approx([round(at) for at in due], abs=1e-3)
    assert len({round(at) for at in due}) == len(due) == sums["ok"]


def test_wall_clocks_of_workers_count_for_nothing(
    cluster: NetCluster, clocks: dict[str, FakedClock]
) -> None:
    clocks[FIRST].step(180)
    clocks[SECOND].step(-420)
    for name in WORKERS:
        cluster.start_on(name, environment=clocks[name].of_python)
    beats = cluster.await_idle(2)

    run = cluster.start_run(cluster.workload(OPEN))
    cluster.await_ran(run, 100)
    clocks[FIRST].step(-900)
    verdict = cluster.judge(run)

    assert sorted(round(beat.offset_s / 60) for beat in beats) == [-3, 7]
    is_right(verdict)
    cluster.end_workers()


@pytest.mark.timing
def test_workers_start_together_as_far_as_their_ways_are_even_on_an_idle_machine(
    cluster: NetCluster,
) -> None:
    for name in WORKERS:
        cluster.start_on(name)
    cluster.await_idle(2)
    workload = cluster.workload(OPEN)

    near = cluster.judge(cluster.start_run(workload))
    cluster.hosts.cable(FIRST, Cable(delay_s=0.05), Cable(delay_s=0.05))
    even = cluster.judge(cluster.start_run(workload))
    cluster.hosts.cable(FIRST, Cable(delay_s=0.1), Cable())
    uneven = cluster.judge(cluster.start_run(workload))

    apart = {}
    for name, verdict in (("near", near), ("even", even), ("uneven", uneven)):
        is_right(verdict)
        # what the report says of a start is when it was, but for what the machine did in between
        assert statistics.median(verdict.told_late()) < 0.02
        apart[name] = verdict.t0_on(FIRST) - verdict.t0_on(SECOND)
    print(f"first worker after the second, seconds: {apart}")
    # half of what the ways differ by, which no clock can tell; the rest is the machine
    assert abs(apart["near"]) < 0.02
    assert abs(apart["even"]) < 0.02
    assert abs(apart["uneven"]) == pytest.approx(0.05, abs=0.02)
    cluster.hosts.mend()
    cluster.end_workers()


def test_the_clock_of_redis_may_be_set_under_load(tmp_path: Path) -> None:
    need_hosts()
    if not faketime_library():
        pytest.skip("the clock of Redis needs libfaketime")
    clock = FakedClock(tmp_path / "redis")
    clock.step(600)
    if not clock.suits(redis_executable()):
        pytest.skip("libfaketime and this Redis do not get on with each other")
    with net_cluster(redis=clock.of_others) as cluster:
        for name in WORKERS:
            cluster.start_on(name)
        cluster.await_idle(2)
        run = cluster.start_run(cluster.workload({"rps": {"times": 60_000, "rps": RATE}}))
        cluster.await_ran(run, 100)
        clock.step(-300)
        leaving = cluster.workers.pop(0)
        leaving.process.terminate()
        assert leaving.finish().code == 0
        before = cluster.ran_on(FIRST)
        # it is told t0 by another clock than those who were there
        cluster.start_on(FIRST)

        run.wait_for(lambda: cluster.ran_on(FIRST) >= before + 100)
        run.interrupt()
        is_right(cluster.judge(run), code=130)

        # who is there has measured before the clock was set again
        clock.step(0)
        is_right(cluster.judge(cluster.start_run(cluster.workload(OPEN))))
