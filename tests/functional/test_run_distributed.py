"""A coordinator and two workers started by hand against one Redis with a password."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, Started, checked, site
from servers import redis_server

pytestmark = pytest.mark.functional

SHORT = {
    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
    "runner": {"constant": {"times": 200, "concurrency": 4}},
}
LONG = {
    "scenario": {"Dummy.dummy": {"sleep": 0.05}},
    "runner": {"constant": {"times": 20_000, "concurrency": 4}},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        # a worker that is not freed waits for longer than a test may
        patient = {"worker": {"coordinator_lost_s": 600}}
        here.configure(found.messaging, {"DEFAULT": {"log_level": "INFO"}}, patient)
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


@pytest.fixture
def holder(cluster: Cluster) -> Iterator[Started]:
    """A run that holds both workers."""
    run = cluster.site.begin(
        "osbench-coord", "run", "--json", cluster.site.task(LONG, name="long.json")
    )
    run.await_said("running")
    yield run
    if run.process.poll() is None:
        run.interrupt()
        run.finish()
    cluster.await_idle(2)


def test_workers_are_listed_with_what_they_can_do(cluster: Cluster) -> None:
    present = cluster.listed()

    shown = cluster.site.coord("workers")

    assert {one["label"] for one in present} == {"host-0", "host-1"}
    assert len({one["incarnation"] for one in present}) == 2
    for one in present:
        assert (one["state"], one["run"], one["held_by"]) == ("idle", "", "")
        assert (one["capacity"], one["stuck"], one["refused"]) == (256, 0, 0)
        assert abs(one["offset_s"]) < 60
    assert shown.code == 0
    assert all(word in shown.out for word in ("host-0", "host-1", "idle", "offset"))
    assert shown.err == ""


def test_the_same_workers_serve_one_run_after_another_which_leaves_no_key(
    cluster: Cluster,
) -> None:
    before = {beat.incarnation for beat in cluster.await_idle(2)}

    both = cluster.site.run(cluster.site.task(SHORT, SHORT))
    after_both = cluster.run_keys()
    alone = cluster.site.run(cluster.site.task(SHORT), "--workers", "1")

    assert [both.code, alone.code] == [0, 0], both.err + alone.err
    for workload in both.result["workloads"]:
        assert checked(workload)["ok"] == 200
        assert {one["label"] for one in workload["workers"]} == {"host-0", "host-1"}
        assert not any(one["lost"] for one in workload["workers"])
    assert alone.sums["ok"] == 200
    (one,) = alone.result["workloads"][0]["workers"]
    assert {beat.incarnation for beat in cluster.await_idle(2)} == before
    assert after_both == cluster.run_keys() == set()
    for worker in cluster.workers:
        served = [both, alone] if one["label"] in worker.said().splitlines()[0] else [both]
        for done in served:
            worker.await_said(f"serving run {done.result['run_id']}")
            worker.await_said(f"left run {done.result['run_id']}")


def test_a_worker_says_at_its_start_what_it_is(cluster: Cluster) -> None:
    first, *_ = cluster.workers[0].said().splitlines()

    assert first.startswith(f"osbench-worker on {socket.gethostname()} (host-0): 1 process of 256")
    assert f"Redis redis://***@127.0.0.1:{cluster.redis.port}" in first
    assert "no own plug-ins" in first
    assert "functional" not in cluster.workers[0].said()


def test_a_second_run_says_who_holds_the_workers_and_gets_them_when_the_first_ends(
    cluster: Cluster, holder: Started
) -> None:
    held = {one["held_by"] for one in cluster.listed()}

    refused = cluster.site.run(cluster.site.task(SHORT), "--wait-for-workers", "1")
    second = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(SHORT))
    second.await_said(" s for workers: 0 of 4 virtual users (0 worker processes).")
    message = second.said()
    holder.interrupt()

    first = holder.finish()
    assert held == {first.result["run_id"]}
    assert refused.code == 2
    assert first.result["run_id"] in refused.result["error"]["message"]
    assert f"Others are in use by run {first.result['run_id']}" in message
    assert first.code == 130
    assert first.sums["not_started"] > 0
    done = second.finish()
    assert done.code == 0, done.err
    assert done.sums["ok"] == 200
    assert re.search(r"\d worker process(es)? after \d+ s: going on", done.err)


def test_the_workers_of_a_killed_coordinator_can_be_freed(
    cluster: Cluster, holder: Started
) -> None:
    holder.process.kill()
    holder.process.wait()

    freed = cluster.site.coord("workers", "free", "last")

    assert freed.code == 0, freed.err
    cluster.await_idle(2)
    done = cluster.site.run(cluster.site.task(SHORT))
    assert done.code == 0, done.err


def test_a_worker_that_leaves_takes_its_keys_along(cluster: Cluster) -> None:
    before = cluster.stored()
    third = cluster.start_worker()
    cluster.await_idle(3)

    third.process.terminate()

    assert third.finish().code == 0
    cluster.workers.remove(third)
    assert cluster.stored() == before


def test_workers_serve_on_after_a_restart_of_redis(cluster: Cluster) -> None:
    before = {beat.incarnation for beat in cluster.await_idle(2)}

    cluster.redis.restart()

    assert {beat.incarnation for beat in cluster.await_idle(2)} == before
    done = cluster.site.run(cluster.site.task(SHORT))
    assert done.code == 0, done.err
    assert done.sums["ok"] == 200
    # what they remember of the server that is gone must not hold the run up
    assert "did not reach" not in done.err
    assert cluster.run_keys() == set()
