"""A worker that is the first process of a container, where a signal without a handler is lost."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from helpers.runs import Cluster, checked, site
from servers import RedisServer

pytestmark = pytest.mark.functional

NAMESPACE = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
ENDLESS = {
    "scenario": {"Dummy.dummy": {"sleep": 0.01}},
    "runner": {"constant": {"times": 1_000_000, "concurrency": 4}},
}


@pytest.fixture
def cluster(redis: RedisServer) -> Iterator[Cluster]:
    if not shutil.which("unshare") or subprocess.run([*NAMESPACE, "true"], check=False).returncode:
        pytest.skip("needs unshare and namespaces of processes")
    with site() as here:
        yield Cluster(here, redis)


def test_sigterm_to_the_first_process_drains_its_worker(cluster: Cluster) -> None:
    outside = cluster.site.start(*NAMESPACE, "osbench-worker", "--processes", "1")
    cluster.await_idle(1)
    (first,) = psutil.Process(outside.process.pid).children()
    run = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(ENDLESS))
    run.wait_for(lambda: any(one.run and one.made > 10 for one in cluster.present()))

    first.terminate()

    assert outside.finish().code == 0
    # the load waits for a worker
    run.interrupt()
    sums = checked(run.finish().result["workloads"][0])
    assert sums["ok"] > 10
    assert sums["lost"] == 0
