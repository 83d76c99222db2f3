"""A name server that takes seconds, as one that asks another which does not answer."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.net_hosts import name_server
from helpers.net_hosts.net_cluster import COORDINATOR, REDIS, WORKERS, NetCluster, net_cluster
from helpers.net_hosts.network import need_hosts
from servers import Child, folder

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

TIMES = 1600
#: How long a lookup takes: longer than a silence after which a worker is lost (3 s).
LOOKUP_S = 4


@contextlib.contextmanager
def slow_names(cluster: NetCluster) -> Iterator[Path]:
    """All hosts ask a name server that answers for IPv4 and ignores IPv6; yields its log."""
    server = cluster.hosts[REDIS]
    with folder() as where:
        log = where / "asked.log"
        command = (sys.executable, name_server.__file__, str(log), f"{REDIS}={server.address}")
        child = Child(
            [*server.within(), *command],
            folder=where,
            log=where / "name_server.err",
        )
        try:
            assert child.wait_until(log.exists), child.tail()
            for name in (COORDINATOR, *WORKERS):
                host = cluster.hosts[name]
                host.hosts.write_text("127.0.0.1 localhost\n", "utf-8")
                options = f"timeout:{LOOKUP_S} attempts:1"
                host.resolv.write_text(f"nameserver {server.address}\noptions {options}\n", "utf-8")
            yield log
        finally:
            child.end(signal.SIGKILL)


def test_a_slow_name_server_delays_the_start_of_a_process_and_nothing_else() -> None:
    need_hosts()
    with net_cluster() as cluster, slow_names(cluster) as log:
        for name in WORKERS:
            cluster.start_on(name)
        cluster.await_idle(2)
        run = cluster.start_run(cluster.workload({"constant": {"times": TIMES, "concurrency": 8}}))
        cluster.await_ran(run, 100)
        before = log.read_text("utf-8").count("ignored")

        # everybody needs new connections, and names have to be asked for again
        with contextlib.closing(cluster.redis.client()) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        verdict = cluster.judge(run)
        assert before > 0
        assert not verdict.problems, (verdict.problems, verdict.notes)
        assert (verdict.done.code, verdict.sums["ok"]) == (0, TIMES), verdict.notes
        assert not any(one["lost"] for one in verdict.workload["workers"])
        assert "silent" not in verdict.notes
        assert all("silent" not in worker.said() for worker in cluster.workers)
