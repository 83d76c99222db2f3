"""One whole run of each kind, from the command to its report; `make test` has no others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers import browser
from helpers.runs import Cluster, checked, site
from servers import CountingServer, counting_server, redis_server
from servers.traced_shop import KEY, traced_shop

pytestmark = pytest.mark.functional

RALLY = {"type": "constant", "times": 40, "concurrency": 4}
OPEN = {"rps": {"rps": 50, "times": 60, "timeout": 30}}
#: An explanation needs 30 traces at p95 or above.
TRACED = {"constant": {"times": 620, "concurrency": 4}}


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    """A web server that counts iterations."""
    with counting_server() as server:
        yield server


@pytest.fixture(scope="module")
def pair() -> Iterator[Cluster]:
    """Two hosts over one Redis."""
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        yield found


def request(url: str, runner: dict[str, Any]) -> dict[str, Any]:
    args = {"url": url, "method": "GET", "status_code": 200}
    return {"scenario": {"HttpRequests.check_request": args}, "runner": runner}


def test_a_rally_task_in_local_mode_with_a_closed_load_and_a_flow(counting: CountingServer) -> None:
    steps = [{"name": "look", "path": "/list"}, {"name": "buy", "path": "/item"}]
    flow = {"base": counting.url, "steps": steps}
    sla = {"failure_rate": {"max": 0}}
    with site() as here:
        here.write(
            "rally.json",
            json.dumps(
                {
                    "Dummy.dummy": [{"args": {"sleep": 0.001}, "runner": RALLY, "sla": sla}],
                    "HttpFlow.run": [{"args": flow, "runner": RALLY, "sla": sla}],
                }
            ),
        )

        done = here.run("rally.json")

        assert done.code == 0, done.out
        results = done.result["workloads"]
        assert [checked(one)["ok"] for one in results] == [40, 40]
        assert set(results[1]["actions"]) == {"look", "buy"}
        (run,) = {name for name, _ in counting.by_run}
        assert counting.by_run == {(run, number): 2 for number in range(1, 41)}
        assert len(here.rows("last")) == 80
        here.await_nothing_left()


def test_two_hosts_with_an_open_load_and_one_that_is_traced_and_explained(
    pair: Cluster, counting: CountingServer
) -> None:
    here = pair.site
    pair.await_idle(2)
    with (
        redis_server() as store,
        # far longer than what a busy machine adds
        traced_shop(here.home, store.url, planted_s=0.5, every=12) as address,
        browser.chromium() as chromium,
    ):
        record = {
            "services": {"shop": address},
            "profiler_hmac_key": KEY,
            "profiler_conn_str": store.url,
        }
        here.deployment({"osbench": record})
        task = here.task(request(f"{address}/buy", TRACED), request(counting.url, OPEN))

        done = here.run(task, "--workers", "2", "--report", "report.html")

        assert done.code == 0, done.out
        traced, arrivals = done.result["workloads"]
        assert (checked(traced)["ok"], checked(arrivals)["ok"]) == (620, 60)
        assert counting.counts == dict.fromkeys(range(1, 61), 1)
        assert "row lock" in traced["tracing"]["explanation"]
        assert len(traced["workers"]) == 2
        with browser.watched(chromium, (here.home / "report.html").as_uri()) as page:
            assert "row lock" in page.page.locator("#w1").inner_text()
            assert page.page.locator(".plot canvas").count() > 0
            assert page.wrong() == []
        here.coord("deployment", "destroy", "lab")


def test_a_resumed_run_does_every_iteration_once(pair: Cluster, counting: CountingServer) -> None:
    here = pair.site
    pair.await_idle(2)
    counting.delay_s = 0.05
    task = here.task(request(counting.url, {"constant": {"times": 200, "concurrency": 4}}))
    run = here.start("osbench-coord", "run", "--json", task)
    run.wait_for(lambda: len(counting.instants) > 20)

    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    done = here.coord("resume", "last", "--json")

    assert (done.code, done.sums["ok"], done.sums["planned"]) == (0, 200, 200), done.err
    assert sorted(counting.counts.items()) == [(number, 1) for number in range(1, 201)]
    assert any("resumed once" in note for note in done.result["notes"])
