"""A run of each kind, from the command to its rows: what most changes would break."""

from __future__ import annotations

import pytest

from helpers.runs import Cluster, site
from servers import CountingServer, RedisServer

pytestmark = pytest.mark.functional

CLOSED = {"constant": {"times": 40, "concurrency": 4}}


def test_a_run_in_local_mode_accounts_for_every_iteration() -> None:
    with site() as here:
        done = here.run(here.task({"scenario": {"Dummy.dummy": {}}, "runner": CLOSED}))

        assert done.code == 0, done.err
        assert done.sums["ok"] == 40
        assert sorted(int(row["iteration"]) for row in here.rows("last")) == list(range(1, 41))
        here.await_nothing_left()


def test_a_run_over_two_hosts_sends_every_request_once(
    redis: RedisServer, counting: CountingServer
) -> None:
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    with site() as here:
        cluster = Cluster(here, redis)
        hosts = [cluster.start_worker() for _ in range(2)]
        cluster.await_idle(2)
        task = here.task({"scenario": {"HttpRequests.check_request": request}, "runner": CLOSED})

        done = here.run(task, "--workers", "2")

        assert done.code == 0, done.err
        assert done.sums["ok"] == 40
        assert counting.counts == dict.fromkeys(range(1, 41), 1)
        assert cluster.run_keys() == set()
        for host in hosts:
            host.process.terminate()
            assert host.finish().code == 0
