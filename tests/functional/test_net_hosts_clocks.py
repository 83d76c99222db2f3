"""The common start of distant workers; tests/world has clocks that are wrong or set."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from helpers.net_hosts.net_cluster import WORKERS, NetCluster, Verdict, net_cluster
from helpers.net_hosts.network import need_hosts
from helpers.net_hosts.switch import Cable

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


def is_right(verdict: Verdict) -> None:
    """All arrivals were started, at the instants of the plan, and the report shows it."""
    assert not verdict.problems, (verdict.problems, verdict.notes)
    assert verdict.done.code == 0, verdict.notes
    sums = verdict.sums
    assert sums["ok"] == sums["planned"]
    due = sorted(float(row["due_s"]) * RATE for row in verdict.rows if row["outcome"] == "ok")
    assert due == pytest.approx(list(range(sums["planned"])), abs=1e-3)


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
