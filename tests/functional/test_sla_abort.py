"""`run --abort-on-sla-failure`: two workers stop soon after a breach, and nothing follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, checked, site
from servers import redis_server

pytestmark = pytest.mark.functional

#: Nothing starts later than this after the end of the iteration that cannot be made good.
STOPPED_WITHIN_S = 2.0

FAILS_FROM_30_ON = {
    "Dummy.failure": {"sleep": 0.02, "from_iteration": 30, "to_iteration": 100_000, "each": 5}
}
NEXT = {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 3}}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


def run(cluster: Cluster, *options: str, **first: Any) -> Any:
    """Run a workload that fails from its 30th iteration on, and another one."""
    task = cluster.site.task({"scenario": FAILS_FROM_30_ON, **first}, NEXT)
    return cluster.site.run(task, *options)


@pytest.mark.parametrize(
    "runner",
    [
        {"constant": {"times": 20_000, "concurrency": 4}},
        {"constant_for_duration": {"duration": 100, "concurrency": 4}},
        {"rps": {"times": 20_000, "rps": 200}},
    ],
    ids=lambda runner: next(iter(runner)),
)
def test_both_workers_stop(cluster: Cluster, runner: dict[str, Any]) -> None:
    done = run(cluster, "--abort-on-sla-failure", runner=runner, sla={"failure_rate": {"max": 0}})

    assert done.code == 1, done.err
    workload, never = done.result["workloads"]
    assert never["not_begun"] == "the run was stopped for a failed SLA before"
    assert {one["label"] for one in workload["workers"]} == {"host-0", "host-1"}
    assert workload["offered"]["cut_short"] == "sla"
    rows = cluster.site.rows("last")
    sums = checked(workload)
    if "constant_for_duration" in runner:
        assert sums["not_started"] == 0
    else:
        assert sums["not_started"] == 20_000 - len(rows)
    assert sums["dropped"] == sums["lost"] == 0
    assert len(rows) == sums["ok"] + sums["failed"]
    cluster.await_idle(2)
    assert cluster.run_keys() == set()


@pytest.mark.timing
def test_both_workers_stop_within_two_seconds_on_an_idle_machine(cluster: Cluster) -> None:
    runner = {"constant": {"times": 20_000, "concurrency": 4}}

    run(cluster, "--abort-on-sla-failure", runner=runner, sla={"failure_rate": {"max": 0}})

    rows = cluster.site.rows("last")
    ends = [
        float(row["started_s"]) + float(row["service_s"])
        for row in rows
        if row["outcome"] == "failed"
    ]
    assert max(float(row["started_s"]) for row in rows) < min(ends) + STOPPED_WITHIN_S


def test_the_report_says_why_and_what_was_not_started(cluster: Cluster) -> None:
    done = run(
        cluster,
        "--abort-on-sla-failure",
        runner={"constant": {"times": 20_000, "concurrency": 4}},
        sla={"max_avg_duration": 5, "failure_rate": {"max": 0.01}},
    )

    never, note = done.result["notes"]
    first, second = done.result["workloads"][0]["sla"]
    assert note == "aborted for a failed SLA: Dummy.failure: failure_rate"
    assert never == "Dummy.dummy was not begun: the run was stopped for a failed SLA before"
    assert "the load is stopped for a failed SLA" in done.err
    assert (first["criterion"], first["success"]) == ("max_avg_duration", True)
    assert (second["criterion"], second["success"]) == ("failure_rate", False)


def test_what_can_still_come_right_runs_to_its_end(cluster: Cluster) -> None:
    done = run(
        cluster,
        "--abort-on-sla-failure",
        runner={"constant": {"times": 60, "concurrency": 4}},
        sla={"throughput": {"min": 1_000_000}},
    )

    assert done.code == 1
    workload, never = done.result["workloads"]
    assert never["not_begun"] == "the run was stopped for a failed SLA before"
    assert checked(workload)["not_started"] == 0
    assert workload["offered"]["cut_short"] is None


def test_without_the_option_all_is_run(cluster: Cluster) -> None:
    done = run(
        cluster,
        runner={"constant": {"times": 60, "concurrency": 4}},
        sla={"failure_rate": {"max": 0}},
    )

    assert done.code == 1
    first, second = map(checked, done.result["workloads"])
    assert first["ok"] + first["failed"] == 60
    assert second["ok"] == 3
    assert done.result["notes"] == []
