"""Workloads of a subtask that run at the same time, each on its own worker processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from helpers.runs import Cluster, Site, checked, site
from servers import RedisServer

pytestmark = pytest.mark.functional


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def parallel(here: Site, *workloads: Mapping[str, Any]) -> str:
    return here.task({"workloads": list(workloads), "run_in_parallel": True})


def users(count: int, seconds: float, **more: object) -> dict[str, Any]:
    runner = {"constant_for_duration": {"duration": seconds, "concurrency": count}}
    return {"scenario": {"Dummy.dummy": {"sleep": 0.01}}, "runner": runner, **more}


def test_workloads_run_at_once_on_their_own_workers(here: Site) -> None:
    rps = {"rps": {"times": 100, "rps": 50}}
    task = parallel(
        here,
        users(4, 2),
        {"scenario": {"Dummy.dummy": {"sleep": 0.01}}, "runner": rps},
    )

    done = here.run(task, "--workers", "3")

    assert done.code == 0, done.err
    first, second = done.result["workloads"]
    assert checked(first)["ok"] > 0
    assert checked(second)["ok"] == 100
    crews = [{worker["pid"] for worker in one["workers"]} for one in (first, second)]
    assert not crews[0] & crews[1]
    assert len(crews[0] | crews[1]) == 3
    # both loads begin at one instant and last as long
    profile = [one["load_profile"] for one in (first, second)]
    assert all(sum(one["starts"][: len(one["starts"]) // 2]) for one in profile)


def test_too_few_workers_are_refused_before_the_load(here: Site) -> None:
    done = here.coord("run", parallel(here, users(1, 1), users(1, 1)), "--workers", "1")

    assert done.code == 2
    assert "2 workloads of the task run at once" in done.err
    assert "give --workers 2 or more, not 1" in done.err


def test_a_failed_sla_of_one_stops_the_other_where_asked(here: Site) -> None:
    failing = {
        "scenario": {"Dummy.dummy_exception": {"size_of_message": 3}},
        "runner": {"constant": {"times": 1000, "concurrency": 1}},
    }
    task = parallel(here, users(2, 60), failing)

    done = here.run(task, "--workers", "2", "--abort-on-sla-failure")

    assert done.code == 1
    other, failed = done.result["workloads"]
    assert [checked(one)["planned"] > 0 for one in (other, failed)] == [True, True]
    assert other["offered"]["duration_s"] < 60
    assert other["offered"]["cut_short"] == "sla"


def test_a_worker_that_dies_is_missed_by_its_own_workload_alone(
    here: Site, redis: RedisServer
) -> None:
    cluster = Cluster(here, redis)
    here.configure(cluster.messaging, {"coordinator": {"worker_lost_after_s": 3}})
    for _ in range(3):
        cluster.start_worker()
    present = cluster.await_idle(3)
    task = parallel(here, users(4, 8, idempotent=True), users(4, 8, idempotent=True))
    run = here.begin("osbench-coord", "run", "--json", task)
    run.await_said("running")

    os.kill(present[0].pid, signal.SIGKILL)
    done = run.finish()

    first, second = done.result["workloads"]
    assert checked(first)["lost"] == checked(second)["lost"] == 0
    lost = [[worker["lost"] for worker in one["workers"]].count(True) for one in (first, second)]
    assert sorted(lost) == [0, 1]
