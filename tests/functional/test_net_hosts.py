"""Coordinator, Redis and two workers, each on a host of its own, and a network that fails them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from helpers.arena import wait_until
from helpers.import_path import TESTS, import_path
from helpers.net_hosts.net_cluster import REDIS, WORKERS, NetCluster, Verdict, facts, net_cluster
from helpers.net_hosts.network import need_hosts
from helpers.processes import is_living

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

FIRST, SECOND = WORKERS
#: Enough that a busy machine cuts the network before the load is over.
TIMES = 3000
CLOSED = {"constant": {"times": TIMES, "concurrency": 8}}


@pytest.fixture(scope="module")
def made() -> Iterator[NetCluster]:
    need_hosts()
    with net_cluster() as found:
        yield found


@pytest.fixture
def cluster(made: NetCluster) -> Iterator[NetCluster]:
    """The cluster with a worker on each of the two hosts, free, and a perfect network."""
    for name in WORKERS[len(made.workers) :]:
        made.start_on(name)
    made.await_idle(2)
    yield made
    made.hosts.mend()


def judged(verdict: Verdict) -> Verdict:
    """The same verdict, if nothing contradicts it: else AssertionError."""
    print(facts(verdict), verdict.done.err, sep="\n")
    assert not verdict.problems, (verdict.problems, facts(verdict), verdict.notes)
    return verdict


def lost_workers(verdict: Verdict) -> set[str]:
    """Labels of the workers that the report says were lost."""
    return {one["label"] for one in verdict.workload["workers"] if one["lost"]}


def test_hosts_are_apart(cluster: NetCluster) -> None:
    listed = {one["label"]: one for one in cluster.listed()}

    assert {one["host"] for one in listed.values()} == set(WORKERS)
    cluster.hosts.cut(FIRST)
    script = "import socket; socket.create_connection(('redis', 6379), 1).close(); print('open')"
    tried = f'python3 -c "{script}" 2>/dev/null || echo closed'
    assert cluster.hosts[FIRST].run("sh", "-c", tried) == "closed\n"
    assert cluster.hosts[SECOND].run("sh", "-c", tried) == "open\n"


def test_nothing_is_left_of_hosts_whose_test_was_killed() -> None:
    need_hosts()
    script = (
        "import subprocess, sys\n"
        "from helpers.net_hosts.network import network\n"
        "with network('one', 'other') as hosts:\n"
        "    ran = subprocess.Popen([*hosts['one'].within(), 'sleep', 'infinity'])\n"
        "    print(hosts['one'].pid, hosts['other'].pid, ran.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    test = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | import_path(TESTS),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert test.stdout is not None
    pids = [int(pid) for pid in test.stdout.readline().split()]
    assert len(pids) == 3
    assert all(is_living(pid) for pid in pids)

    test.kill()

    test.communicate()
    # namespaces and interfaces go with the processes that have them
    assert wait_until(lambda: not any(is_living(pid) for pid in pids))


def test_delay_and_loss_change_no_count(cluster: NetCluster) -> None:
    for name in WORKERS:
        cluster.hosts.delay(name, 0.05, 0.02)
    cluster.hosts.lose(REDIS, 0.05)

    verdict = judged(cluster.judge(cluster.start_run(cluster.workload(CLOSED))))

    assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES)
    assert all(verdict.starts(name) for name in WORKERS)


def test_a_short_cut_of_a_worker_loses_nothing(cluster: NetCluster) -> None:
    run = cluster.start_run(cluster.workload(CLOSED))
    cluster.await_ran(run, 100)

    cluster.hosts.cut(FIRST)
    time.sleep(1.0)
    cluster.hosts.mend(FIRST)

    verdict = judged(cluster.judge(run))
    assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES)


def test_a_worker_that_stays_cut_off_is_named_and_its_rest_is_done_by_the_other(
    cluster: NetCluster,
) -> None:
    run = cluster.start_run(cluster.workload(CLOSED, idempotent=True))
    cluster.await_ran(run, 100)

    cluster.hosts.cut(FIRST)

    verdict = judged(cluster.judge(run, idempotent=True))
    assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES)
    assert lost_workers(verdict) == {FIRST}
    assert f"worker {FIRST}:" in verdict.notes
    assert "was declared lost" in verdict.notes
    cluster.hosts.mend(FIRST)
    cluster.await_idle(2)


def test_what_a_worker_did_while_it_was_cut_off_counts_once_it_is_back(
    cluster: NetCluster,
) -> None:
    run = cluster.start_run(cluster.workload(CLOSED, sleep_s=0.05))
    cluster.await_ran(run, 100)

    cluster.hosts.cut(FIRST)
    # longer than worker_lost_after_s
    run.await_said("is declared lost")
    cluster.hosts.mend(FIRST)

    verdict = judged(cluster.judge(run))
    assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES)
    assert verdict.sums["lost"] == 0
    assert f"worker {FIRST}:" in verdict.notes


def test_a_worker_that_leaves_loses_nothing_and_one_that_comes_late_takes_its_place(
    cluster: NetCluster,
) -> None:
    run = cluster.start_run(cluster.workload({"constant": {"times": 100_000, "concurrency": 8}}))
    cluster.await_ran(run, 100)
    leaving = cluster.workers.pop(0)

    leaving.process.terminate()
    assert leaving.finish().code == 0, leaving.said()
    before = cluster.ran_on(FIRST)
    cluster.start_on(FIRST)
    run.wait_for(lambda: cluster.ran_on(FIRST) > before + 100)
    run.interrupt()

    verdict = judged(cluster.judge(run))
    assert verdict.done.code == 130
    # all that started has ended, the rest was returned
    assert verdict.sums["ok"] == len({line.iteration for line in verdict.lines})
    assert verdict.sums["ok"] + verdict.sums["not_started"] == 100_000
    assert [one["label"] for one in verdict.workload["workers"]].count(FIRST) == 2


def test_a_redis_that_is_cut_off_delays_and_loses_nothing(cluster: NetCluster) -> None:
    run = cluster.start_run(cluster.workload(CLOSED))
    cluster.await_ran(run, 100)

    cluster.hosts.cut(REDIS)
    # of Redis, or of it as the broker
    run.wait_for(lambda: "workers continue for as long as their lease lasts" in run.said())
    time.sleep(4.0)
    cluster.hosts.mend(REDIS)

    verdict = judged(cluster.judge(run))
    assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES)
    assert lost_workers(verdict) == set()
    assert re.search("the coordinator could not reach or use Redis at .* for ", verdict.notes)
