"""Workers that are killed, stopped and drained under load: every iteration is accounted for.

OSBENCH_LOSS_REPETITIONS sets how often a worker is killed in each test (2 unless set).
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Finished, Started, by_iteration, site
from servers import CountingServer, redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(1200)]

REPETITIONS = int(os.environ.get("OSBENCH_LOSS_REPETITIONS", "2"))
TIMES = 800


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        here.configure(found.messaging, {"coordinator": {"worker_lost_after_s": 3}})
        yield found


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with two idle workers; one that was killed young was not replaced."""
    for worker in list(cluster.workers):
        if worker.process.poll() is not None:
            cluster.workers.remove(worker)
    while len(cluster.workers) < 2:
        cluster.start_worker()
    cluster.await_idle(2)
    yield cluster
    assert cluster.run_keys() == set()


@pytest.fixture
def counting(counting: CountingServer) -> CountingServer:
    """A web server that counts iterations and takes 20 ms for each."""
    counting.delay_s = 0.02
    return counting


def requests(counting: CountingServer, runner: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A workload of requests to the counting server."""
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    return {"scenario": {"HttpRequests.check_request": request}, "runner": runner, **more}


def start(cluster: Cluster, counting: CountingServer, workload: dict[str, Any]) -> Started:
    """Start a run and wait for its first request."""
    seen = counting.counts.total()
    run = cluster.site.start("osbench-coord", "run", "--json", cluster.site.task(workload))
    run.wait_for(lambda: counting.counts.total() > seen)
    return run


def agrees(cluster: Cluster, counting: CountingServer, done: Finished) -> dict[str, Any]:
    """The accounting, once server and ledger have been compared."""
    sums = done.sums
    run_id = done.result["run_id"]
    seen = {number for run, number in counting.by_run if run == run_id}
    rows = cluster.site.rows(run_id)
    ran = by_iteration(rows, "ok", "failed", "timed_out")
    assert len(ran) == sums["ok"] + sums["failed"] + sums["timed_out"]
    assert ran <= seen, "a result without a request"
    assert not seen & by_iteration(rows, "dropped_late", "dropped_worker_lost")
    # what was started and not reported is lost, and nothing else was started
    assert len(seen - ran) <= sums["lost"]
    return sums


def starts(counting: CountingServer, done: Finished) -> set[int]:
    """How often iterations of a run were started: the different counts."""
    run_id = done.result["run_id"]
    return {count for (run, _), count in counting.by_run.items() if run == run_id}


CONSTANT = {"constant": {"times": TIMES, "concurrency": 8}}


def killed(
    cluster: Cluster, counting: CountingServer, workload: dict[str, Any], seed: int
) -> Finished:
    """A run of about two seconds, of whose workers one is killed at a random moment."""
    chance = random.Random(seed)
    run = start(cluster, counting, workload)
    # in turn: a supervisor replaces a process that has lived for a while
    victim = cluster.child_of(cluster.workers[seed % 2])
    wait_s = chance.uniform(0, 1.8)
    time.sleep(wait_s)
    os.kill(victim, signal.SIGKILL)
    done = run.finish()
    print(f"seed {seed}: killed after {wait_s:.3f} s: code {done.code}, {done.sums}")
    assert "Traceback" not in done.err
    return done


@pytest.mark.parametrize("seed", range(REPETITIONS))
def test_iterations_of_a_killed_worker_are_ok_or_lost(
    pair: Cluster, counting: CountingServer, seed: int
) -> None:
    done = killed(pair, counting, requests(counting, CONSTANT), seed)

    sums = agrees(pair, counting, done)
    assert sums["planned"] == TIMES
    assert sums["ok"] + sums["lost"] == TIMES
    assert starts(counting, done) == {1}
    assert done.code == (3 if sums["lost"] else 0)


@pytest.mark.parametrize("seed", range(100, 100 + -(-REPETITIONS // 3)))
def test_an_idempotent_workload_loses_nothing(
    pair: Cluster, counting: CountingServer, seed: int
) -> None:
    done = killed(pair, counting, requests(counting, CONSTANT, idempotent=True), seed)

    sums = agrees(pair, counting, done)
    assert sums["ok"] == sums["planned"] == TIMES
    assert starts(counting, done) <= {1, 2}
    assert done.code == 0, done.err


@pytest.mark.parametrize("seed", range(200, 200 + -(-REPETITIONS // 3)))
def test_arrivals_of_a_killed_worker_are_lost_dropped_or_done_by_the_other(
    pair: Cluster, counting: CountingServer, seed: int
) -> None:
    done = killed(pair, counting, requests(counting, {"rps": {"times": 300, "rps": 150}}), seed)

    sums = agrees(pair, counting, done)
    assert sums["planned"] == 300
    assert starts(counting, done) == {1}
    assert done.code == (3 if sums["lost"] or sums["drops"].get("worker_lost") else 0)


def test_the_users_of_a_killed_worker_are_missing_since_it_fell_silent(
    pair: Cluster, counting: CountingServer
) -> None:
    users, duration_s = 8, 6
    runner = {"constant_for_duration": {"duration": duration_s, "concurrency": users}}
    run = start(pair, counting, requests(counting, runner))
    victim = pair.child_of(pair.workers[0])

    os.kill(victim, signal.SIGKILL)

    done = run.finish()
    (workload,) = done.result["workloads"]
    shown = pair.site.coord("results", done.result["run_id"]).out
    # half of the users for the two seconds at least that it takes to give a worker up
    held = 1 - (users / 2 * 2) / (users * duration_s)
    assert workload["offered"]["concurrency_held"] <= held
    assert [one["lost"] for one in workload["workers"] if one["pid"] == victim] == [True]
    pattern = rf":{victim} fell silent \d+ s into the load and was declared lost \d+ s later"
    (note,) = [note for note in done.result["notes"] if re.search(pattern, note)]
    assert note.startswith("HttpRequests.check_request: worker ")
    assert re.search(rf"1 of them lost: \S+:{victim}\s*$", shown, re.M)
    (lost,) = (mark for mark in pair.site.marks(done.result["run_id"]) if mark["kind"] == "loss")
    assert 0 <= lost["from_s"] < lost["to_s"]
    assert f":{victim} fell silent" in lost["text"]


def test_a_worker_that_was_stopped_and_goes_on_starts_nothing_twice(
    pair: Cluster, counting: CountingServer
) -> None:
    counting.delay_s = 0.05
    times = 1600
    workload = requests(counting, {"constant": {"times": times, "concurrency": 8}})
    run = start(pair, counting, workload)
    victim = pair.child_of(pair.workers[0])

    os.kill(victim, signal.SIGSTOP)
    time.sleep(5)
    os.kill(victim, signal.SIGCONT)

    done = run.finish()
    print(f"stopped for 5 s: code {done.code}, {done.sums}")
    sums = agrees(pair, counting, done)
    assert sums["planned"] == times
    assert sums["not_started"] == 0
    # whether it was declared lost or not, it has come back
    assert sums["lost"] == 0
    assert not any(one["lost"] for one in done.result["workloads"][0]["workers"])
    assert starts(counting, done) == {1}
    assert done.code == (3 if sums["lost"] else 0)
    pair.await_idle(2)


def test_a_worker_that_is_asked_to_leave_loses_nothing(
    pair: Cluster, counting: CountingServer
) -> None:
    run = start(pair, counting, requests(counting, CONSTANT))
    leaving = pair.workers.pop()

    leaving.process.terminate()

    done = run.finish()
    sums = agrees(pair, counting, done)
    assert done.code == 0, done.err
    assert sums["ok"] == sums["planned"] == TIMES
    assert starts(counting, done) == {1}
    assert leaving.finish().code == 0
    assert len(pair.await_idle(1)) == 1
