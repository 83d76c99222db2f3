"""Workers that are killed under load: every iteration is accounted for.

OSBENCH_LOSS_REPETITIONS sets how often a worker is killed (once unless set).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Finished, Started, asked, by_iteration, site
from servers import CountingServer, redis_server
from servers.child import PATIENCE_S

pytestmark = [pytest.mark.functional, pytest.mark.timeout(1200)]

REPETITIONS = int(os.environ.get("OSBENCH_LOSS_REPETITIONS", "1"))
TIMES = 800


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        here.configure(found.messaging, {"coordinator": {"worker_lost_after_s": 3}})
        yield found


def unread(cluster: Cluster) -> list[str]:
    """Keys of a run, but for those that a worker reads when it is back."""
    return [key for key in cluster.run_keys() if ":ctl:" not in key]


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
    # a worker that was killed may have been away only: what it would have to read stays for days;
    # one that lives may have a batch to read that is not of its run any more
    deadline = time.monotonic() + PATIENCE_S
    for _ in asked(lambda: not unread(cluster), 0.05):
        assert time.monotonic() < deadline, unread(cluster)


@pytest.fixture
def counting(counting: CountingServer) -> CountingServer:
    """A web server that counts iterations and takes 20 ms for each."""
    counting.delay_s = 0.02
    return counting


def start(cluster: Cluster, counting: CountingServer) -> Started:
    """Start a run of requests to the counting server and wait for the first one."""
    seen = counting.counts.total()
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    workload = {
        "scenario": {"HttpRequests.check_request": request},
        "runner": {"constant": {"times": TIMES, "concurrency": 8}},
    }
    run = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(workload))
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


def killed(cluster: Cluster, counting: CountingServer, seed: int) -> Finished:
    """A run of about two seconds, of whose workers one is killed at a random moment."""
    chance = random.Random(seed)
    run = start(cluster, counting)
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
    done = killed(pair, counting, seed)

    sums = agrees(pair, counting, done)
    assert sums["planned"] == TIMES
    assert sums["ok"] + sums["lost"] == TIMES
    assert starts(counting, done) == {1}
    assert done.code == (3 if sums["lost"] else 0)
