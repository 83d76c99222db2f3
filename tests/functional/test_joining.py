"""Workers that start while a run is under load: the run takes them, and no iteration is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Started, checked, site
from servers import RedisServer

pytestmark = pytest.mark.functional

USERS = 12
#: More than it ever reaches: a test ends it.
CLOSED = {
    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
    "runner": {"constant": {"times": 1_000_000, "concurrency": USERS}},
}
OPEN = {
    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
    "runner": {"rps": {"rps": 50, "duration": 3_600}},
}


@pytest.fixture
def cluster(redis: RedisServer) -> Iterator[Cluster]:
    with site() as here:
        found = Cluster(here, redis)
        here.configure(found.messaging)
        found.start_worker()
        found.await_idle(1)
        yield found


def begun(cluster: Cluster, workload: dict[str, Any], *options: str) -> Started:
    """A run under load on one worker."""
    run = cluster.site.begin(
        "osbench-coord", "run", "--json", cluster.site.task(workload), *options
    )
    run.wait_for(lambda: iterations_of(cluster).get("host-0", 0) > 10)
    return run


def iterations_of(cluster: Cluster) -> dict[str, int]:
    """Running and ended iterations of the only run, by label of the worker."""
    present = cluster.present()
    return {one.label: one.made + one.busy for one in present if one.run and one.state == "running"}


def idle(cluster: Cluster) -> list[str]:
    """Labels of the workers that are in no run."""
    return [one.label for one in cluster.present() if one.state == "idle"]


@pytest.mark.parametrize("workload", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_run_takes_workers_that_start_under_its_load(
    cluster: Cluster, workload: dict[str, Any]
) -> None:
    run = begun(cluster, workload)
    cluster.start_worker()
    # blocks of results: some seconds of load
    run.wait_for(lambda: iterations_of(cluster).get("host-1", 0) > 20)
    run.interrupt()
    done = run.finish()

    found = checked(done.result["workloads"][0])
    assert found["lost"] == found["dropped"] == 0
    by_label = {one["label"]: one for one in done.result["workloads"][0]["workers"]}
    assert set(by_label) == {"host-0", "host-1"}
    assert all(one["iterations"] > 20 for one in by_label.values())
    assert not any(one["lost"] for one in by_label.values())
    assert cluster.site.marks(done.result["run_id"])[0]["label"] == "host-1 joins"


@pytest.mark.parametrize("options", [("--workers", "1"), ("--no-join",)])
def test_a_run_with_a_number_of_workers_keeps_to_it(
    cluster: Cluster, options: tuple[str, ...]
) -> None:
    run = begun(cluster, CLOSED, *options)
    cluster.start_worker()
    run.wait_for(lambda: idle(cluster) == ["host-1"])
    before = iterations_of(cluster)["host-0"]
    run.wait_for(lambda: iterations_of(cluster)["host-0"] > before + 20)

    assert idle(cluster) == ["host-1"]
    run.interrupt()
    (one,) = run.finish().result["workloads"][0]["workers"]
    assert one["label"] == "host-0"


def test_a_run_begins_with_one_of_the_workers_that_may_join(cluster: Cluster) -> None:
    run = begun(cluster, CLOSED, "--workers", "2", "--join")
    for _ in range(2):
        cluster.start_worker()
    run.wait_for(lambda: len(iterations_of(cluster)) == 2 and len(idle(cluster)) == 1)
    run.interrupt()
    assert len(run.finish().result["workloads"][0]["workers"]) == 2
