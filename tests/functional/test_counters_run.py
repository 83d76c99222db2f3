"""Runs beside a real Prometheus: what was full is told, and the run needs no Prometheus."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.fake_prometheus import FakePrometheus
from helpers.json_server import LoopbackServer, QuietHandler, serving
from helpers.machine import Machine
from helpers.readme import blocks, files
from helpers.runs import Cluster, Site
from osbench.common.machine.cpu_quota import usable_cores
from osbench.edges.traces.counters.counter_query import read_queries
from servers import folder
from servers.prometheus_server import node_exporter, prometheus

pytestmark = pytest.mark.functional

GUIDE = "docs/cloud-counters.md"
COLLECTORS = ("cpu", "diskstats", "meminfo", "netdev", "uname")
#: The service is slow, and its CPU full, in the last part of each period; seconds.
PERIOD_S, FULL_S = 12.0, 4.0
LOAD_S, TRIES = 36, 8
BURN = "while True: pass"


@pytest.fixture
def here(guest: Site) -> Site:
    """A site whose runs have a worker."""
    return guest


class Shop(LoopbackServer):
    """A service with an exporter of its host's CPU, which is full from time to time."""

    def __init__(self) -> None:
        super().__init__(_ShopHandler)
        self.since = time.monotonic()
        self._lock = threading.Lock()
        #: Seconds that one core was busy and idle, until an instant.
        self._busy_s = self._idle_s = 0.0
        self._until = self.since

    @property
    def is_full(self) -> bool:
        return (time.monotonic() - self.since) % PERIOD_S > PERIOD_S - FULL_S

    def metrics(self) -> str:
        with self._lock:
            now = time.monotonic()
            busy = 1.0 if self.is_full else 0.3
            passed, self._until = now - self._until, now
            self._busy_s += busy * passed
            self._idle_s += (1 - busy) * passed
            name = "node_cpu_seconds_total"
            return (
                f"# TYPE {name} counter\n"
                f'{name}{{cpu="0",mode="user"}} {self._busy_s}\n'
                f'{name}{{cpu="0",mode="idle"}} {self._idle_s}\n'
            )


class _ShopHandler(QuietHandler):
    server: Shop

    def do_GET(self) -> None:
        if self.path == "/metrics":
            body = self.server.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        time.sleep(0.5 if self.server.is_full else 0.04)
        self.answer(200, {})


@contextlib.contextmanager
def burners() -> Iterator[None]:
    """Keeps all cores busy, behind all other work."""
    running = [
        subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", BURN])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def load_of(url: str, duration: float) -> dict[str, Any]:
    return {
        "scenario": {
            "HttpRequests.check_request": {"url": url, "method": "GET", "status_code": 200}
        },
        "runner": {"constant_for_duration": {"duration": duration, "concurrency": 2}},
    }


def configured(fleet: Cluster, here: Site, **metrics: object) -> None:
    """Configure counters, beside the worker."""
    here.configure(fleet.messaging, {"metrics": {"late_s": 2, **metrics}})


def test_a_host_that_is_full_while_iterations_are_slow_is_named(fleet: Cluster, here: Site) -> None:
    with serving(Shop()) as shop:
        targets = {"db1:9100": shop.url.removeprefix("http://")}
        with prometheus(targets) as server:
            configured(fleet, here, prometheus=server.url)
            # a machine that stands still makes other iterations slow, and misses scrapes
            for _ in range(TRIES):
                done = here.run(here.task(load_of(f"{shop.url}/items", LOAD_S)))
                assert done.code == 0, done.err
                if "While they ran" in done.out:
                    break

    assert f"counters are read from {server.url}, live and at the end" in done.err
    (workload,) = done.result["workloads"]
    (cpu,) = workload["counters"]
    assert (cpu["name"], cpu["host"], cpu["kind"]) == ("CPU", "db1", "share")
    assert 0.3 < cpu["mean"] < cpu["p95"]
    assert "While they ran, CPU of db1 was at" in workload["tracing"]["explanation"]
    # neither report nor explain needs a Prometheus
    told = here.call("trace", "explain", "last").out
    assert "While they ran, CPU of db1 was at" in " ".join(told.split())
    shown = here.call("results", "last").out
    assert "CPU of db1" in shown
    assert "nearly full" in shown
    page = here.home / "page.html"
    made = here.call("report", "last", "--html", str(page))
    assert made.code == 0, made.err
    assert "System under test" in page.read_text("utf-8")


def test_counters_of_this_host_are_read(fleet: Cluster, here: Site) -> None:
    with node_exporter(COLLECTORS) as exporter, prometheus({"10.9.8.7:9100": exporter}) as server:
        configured(fleet, here, prometheus=server.url)
        with burners():
            done = here.run(here.task(load_of(f"http://{exporter}/", 4)))

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    found = {(one["name"], one["host"]): one for one in workload["counters"]}
    # as the host calls itself, not by its address
    host = platform.node()
    assert ("memory", host) in found
    cpu = found["CPU", host]
    assert 0 < cpu["mean"] <= cpu["max"] <= 1.001
    if usable_cores() == os.cpu_count():
        assert cpu["max"] > 0.9
    (note,) = [one for one in done.result["notes"] if "queries had no series" in one]
    assert "MySQL connections" in note
    # all default queries are PromQL
    assert "was refused" not in " ".join(done.result["notes"])


def test_whatever_is_wrong_with_prometheus_costs_a_note(fleet: Cluster, here: Site) -> None:
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 5}}})
    with serving(FakePrometheus()) as server:
        server.status, server.text = 503, "upstream\x1b[2J is away"
        url = server.url.replace("http://", "http://anna:s3cret-word@")
        configured(fleet, here, prometheus=url)
        done = here.run(task)

    assert done.code == 0, done.err
    (note,) = [one for one in done.result["notes"] if one.startswith("counters")]
    assert "HTTP 503 upstream" in note
    assert "\x1b" not in note
    written = [path.read_bytes() for path in here.data.rglob("*") if path.is_file()]
    own = (here.data / "osbench.conf").read_bytes()
    assert not any(b"s3cret-word" in one for one in written if one != own)
    assert "s3cret-word" not in done.out + done.err


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"prometheus": "ftp://h:1"}, "must begin with one of http://, https://"),
        ({"prometheus": "http://h:1/?x=1"}, "is not an address of Prometheus"),
        ({"prometheus": "http://h:1", "queries": "none.yaml"}, "No such file"),
        ({"prometheus": "http://h:1", "prometheus_headers": "x"}, "must be name=value"),
    ],
)
def test_settings_that_are_wrong_end_the_run_before_it_begins(
    fleet: Cluster, here: Site, values: dict[str, str], why: str
) -> None:
    configured(fleet, here, **values)

    done = here.call("run", "--json", here.task({"scenario": {"Dummy.dummy": {}}}))

    assert done.code == 2
    assert why in done.out
    assert "Traceback" not in done.out + done.err
    assert not list(here.data.glob("runs/*/run.json"))


def test_the_guide_to_counters() -> None:
    with folder() as home, node_exporter(COLLECTORS) as exporter:
        desk = home / "desk"
        desk.mkdir()
        (step,) = blocks("counters", GUIDE)
        with prometheus({"db1:9100": exporter}) as server:
            machine = Machine(home, folder=desk, forked=True)
            machine.place("9090", server.port)
            text = step.text.replace("--duration 20", "--duration 6")
            said = machine.run(replace(step, text=text))
        (summary,) = Path(home).rglob("summary.json")
        (workload,) = json.loads(summary.read_text("utf-8"))["workloads"]

    assert "resources" in said
    assert "Note: counters: " in said
    assert {one["name"] for one in workload["counters"]} >= {"CPU", "memory"}


def test_the_file_of_queries_in_the_guide_is_valid(tmp_path: Path) -> None:
    ((name, body),) = files(GUIDE).items()
    path = tmp_path / name
    path.write_text(body, "utf-8")

    assert [one.kind for one in read_queries(path)] == ["share", "queue", "flow"]
