"""Prometheus can read a run and its workers while they are at work."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import requests
from prometheus_client import Metric
from prometheus_client.openmetrics import parser

from helpers.runs import Cluster, Started, site
from servers import RedisServer
from servers.child import PATIENCE_S, free_port

pytestmark = pytest.mark.functional


def scrape(port: int) -> dict[str, Metric]:
    """The metrics of an endpoint by name; none where nobody listens yet."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    try:
        answer = requests.get(
            f"http://127.0.0.1:{port}/metrics", headers=accept, timeout=PATIENCE_S
        )
    except requests.ConnectionError:
        return {}
    assert answer.status_code == 200
    return {one.name: one for one in parser.text_string_to_metric_families(answer.text)}


def await_metrics(
    port: int, process: Started, enough: Callable[[dict[str, Metric]], bool]
) -> dict[str, Metric]:
    """Scrape until the metrics are as wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while not enough(found := scrape(port)):
        assert process.process.poll() is None, process.said()
        assert time.monotonic() < deadline, process.said()
        time.sleep(0.1)
    return found


def ended(found: dict[str, Metric]) -> float:
    """Iterations that succeeded so far."""
    samples = found["osbench_iterations"].samples if "osbench_iterations" in found else []
    return sum(one.value for one in samples if one.labels["state"] == "ok")


def test_a_run_is_read_while_it_goes_on() -> None:
    with site() as here:
        port = free_port()
        load = ("--scenario", "Dummy.dummy", "--arg", "sleep=0.01", "--rps", "50")
        # the workers of local mode do not listen where those of the host do
        here.configure({"worker": {"metrics_address": port}})
        run = here.begin(
            *("osbench-coord", "run", "--json", *load, "--duration", "600"),
            *("--metrics", str(port)),
        )

        first = await_metrics(port, run, lambda found: ended(found) > 0)
        later = await_metrics(port, run, lambda found: ended(found) > ended(first))
        run.interrupt()
        done = run.finish()

        assert done.code == 130, done.err
        assert done.sums["ok"] >= ended(later)
        (about,) = first["osbench_run"].samples
        assert about.labels["run_id"] == done.result["run_id"]
        assert "osbench_exit_code" not in first
        (count,) = [
            one.value
            for one in later["osbench_service_seconds"].samples
            if one.name.endswith("_count")
        ]
        assert count == ended(later)
        assert scrape(port) == {}


def test_a_port_that_is_taken_is_told_before_the_run() -> None:
    with site() as here:
        # a run that begins no workers before it is refused
        here.configure({"messaging": {"redis_url": "redis://127.0.0.1:1/0"}})
        run = ("run", "--scenario", "Dummy.dummy", "--times", "1")
        refused = here.call(*run, "--metrics", "192.0.2.1:9000", "--export", "junit=r.xml")

        assert refused.code == 2
        assert "cannot listen on 192.0.2.1:9000" in refused.err
        assert "cannot listen" in (here.home / "r.xml").read_text("utf-8")
        assert not (here.data / "runs").exists()


@pytest.fixture
def cluster(redis: RedisServer) -> Cluster:
    with site() as here:
        yield Cluster(here, redis)


def test_workers_are_read(cluster: Cluster) -> None:
    port = free_port()
    worker = cluster.start_worker("--metrics", str(port))

    found = await_metrics(port, worker, lambda one: "osbench_worker_busy" in one)
    (beat,) = cluster.await_idle(1)
    found = await_metrics(port, worker, lambda one: one["osbench_worker_busy"].samples)

    assert found["osbench_worker_up"].samples[0].value == 1
    (capacity,) = found["osbench_worker_capacity"].samples
    assert capacity.value == beat.capacity
    assert capacity.labels == {"host": beat.host, "pid": str(beat.pid), "label": "host-0"}
    assert found["osbench_worker_state"].samples[0].labels["state"] == "idle"

    cluster.redis.stop()

    without = await_metrics(port, worker, lambda one: not one["osbench_worker_up"].samples[0].value)
    assert "osbench_worker_busy" not in without
