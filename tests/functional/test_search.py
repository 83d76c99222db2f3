"""The runner `search`: looks for the highest rate that holds, and goes on with it when resumed.

Whether a rate holds does not depend on how busy the machine is: the criterion reads the instants at
which arrivals were due.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, watched
from helpers.runs import Cluster, Site, checked, site
from helpers.shown_page import page_of
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import redis_server

pytestmark = pytest.mark.functional

#: The rate above which the criterion is not met.
CAPACITY = 47.0
CRITERION = f"""
from osbench.plugin import sla


class SlowEnough(sla.Sla):
    NAME = "slow_enough"

    def __init__(self, config):
        super().__init__(config)
        self.most = config.get("rate", {CAPACITY})
        self.dues = []

    def add(self, columns):
        self.dues += columns.due.tolist()

    def check(self, statistics):
        span_s = max(1, max(self.dues) - min(self.dues)) / 1e9
        rate = (len(self.dues) - 1) / span_s
        return self.verdict(rate <= self.most, f"{{rate:.3g}}/s")
"""


@pytest.fixture(scope="module")
def here(fleet: Cluster) -> Site:
    """A site whose runs have a worker; criteria are the coordinator's."""
    (fleet.site.home / "criterion.py").write_text(CRITERION)
    return fleet.site


@pytest.fixture
def apart() -> Iterator[Site]:
    """A site of a test that ends workers or a coordinator."""
    with site() as found:
        (found.home / "criterion.py").write_text(CRITERION)
        yield found


def task(here: Site, *, scenario: Any = None, **config: Any) -> list[str]:
    """Arguments of a run that searches."""
    runner = {"search": {"low": 10, "high": 500, "hold": 1, "settle": 0.2, **config}}
    workload = {
        "scenario": scenario or {"Dummy.dummy": {"sleep": 0.001}},
        "runner": runner,
        "sla": {"slow_enough": {}},
    }
    return ["--json", here.task(workload), "--plugin-path", str(here.home / "criterion.py")]


def test_the_rate_that_holds_is_bracketed_and_every_iteration_accounted_for(here: Site) -> None:
    done = here.coord("run", *task(here, precision=0.4))

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    sums = checked(workload)
    assert sums["ok"] == sums["planned"]
    search = workload["search"]
    assert (search["kind"], search["precise"], search["limit"]) == ("found", True, None)
    assert search["low"] < CAPACITY < search["high"] <= 1.4 * search["low"]
    assert search["held"] <= CAPACITY < search["broke"] <= 80
    tried = [trial["rate"] for trial in search["trials"]]
    assert tried[:4] == [10, 20, 40, 80]
    for trial in search["trials"]:
        assert trial["held"] == (trial["rate"] <= CAPACITY)
        assert trial["ok"] == pytest.approx(trial["rate"], abs=1)
    (verdict,) = workload["sla"]
    assert (verdict["criterion"], verdict["success"]) == ("search", True)
    report = here.call("results", "last", "--details").out
    assert "capacity" in report
    assert "with 95 % between" in report
    assert re.search(r"80/s not sustained: [\d.]+ ok/s", report)


def test_a_search_that_holds_everywhere_or_nowhere_says_so(here: Site) -> None:
    above = here.coord("run", *task(here, low=20, high=40))
    below = here.coord("run", *task(here, low=60, high=90))

    assert above.code == 0
    assert above.result["workloads"][0]["search"]["kind"] == "above"
    said = "at least 40.0/s, the highest rate that was tried: raise `high`"
    shown = here.call("results", above.result["run_id"]).out
    assert said in shown
    assert "40/s sustained, the highest rate that was tried: raise `high`" in shown
    assert above.result["workloads"][0]["sla"][0]["detail"] == said
    assert below.code == 1
    search = below.result["workloads"][0]["search"]
    assert (search["kind"], [trial["rate"] for trial in search["trials"]]) == ("below", [60, 60])
    said = "below 60.0/s, the lowest rate that was tried: lower `low`"
    shown = here.call("results", "last").out
    assert "no rate was sustained; at 60/s, the lowest: slow_enough: " in " ".join(shown.split())
    assert below.result["workloads"][0]["sla"][0]["detail"].startswith(f"{said}; at 60.0/s ")


def test_a_search_whose_coordinator_is_killed_goes_on(apart: Site) -> None:
    with redis_server(password="functional") as redis:
        cluster = Cluster(apart, redis)
        cluster.start_worker("--plugin-path", str(apart.home / "criterion.py"))
        cluster.await_idle(1)
        run = apart.begin("osbench-coord", "run", *task(apart, precision=0.4))
        run.wait_for(lambda: "trial 4" in apart.status().get("search", ""))

        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        (listed,) = json.loads(apart.coord("runs", "list", "--json").out)
        done = apart.coord("resume", listed["run"], "--json")

    # what was due meanwhile is dropped
    assert done.code in (0, 3), done.err
    (workload,) = done.result["workloads"]
    checked(workload)
    search = workload["search"]
    assert search["kind"] == "found"
    assert search["low"] < CAPACITY < search["high"]
    assert [trial["rate"] for trial in search["trials"]][:3] == [10, 20, 40]
    told = [trial for trial in search["trials"] if trial["cause"] != "disturbed"]
    assert all(trial["held"] == (trial["rate"] <= CAPACITY) for trial in told)


def test_a_trial_that_loses_iterations_with_a_worker_is_made_again(apart: Site) -> None:
    with redis_server(password="functional") as redis:
        cluster = Cluster(apart, redis)
        for _ in range(2):
            cluster.start_worker("--plugin-path", str(apart.home / "criterion.py"))
        cluster.await_idle(2)
        # each worker has some in hand at any moment
        sleeping = {"Dummy.dummy": {"sleep": 0.6}}
        arguments = task(apart, precision=0.8, hold=3, scenario=sleeping)
        run = apart.begin("osbench-coord", "run", *arguments)

        run.wait_for(lambda: "trial 2" in apart.status().get("search", ""))
        # what a worker says that it has may be of the trial before
        before = apart.status()["settled"]
        run.wait_for(lambda: apart.status()["settled"] >= before + 4 and all_busy(apart))

        # what it runs is lost with it
        os.kill(cluster.child_of(cluster.workers[0]), signal.SIGKILL)
        done = run.finish()

    assert done.code == 3, done.err
    (workload,) = done.result["workloads"]
    assert checked(workload)["lost"] > 0
    trials = workload["search"]["trials"]
    disturbed = [trial for trial in trials if trial["cause"] == "disturbed"]
    assert disturbed
    # the same rate once more, and all others judged as if nothing had been
    at = trials.index(disturbed[-1])
    assert trials[at + 1]["rate"] == disturbed[-1]["rate"]
    told = [trial for trial in trials if trial["cause"] != "disturbed"]
    assert all(trial["held"] == (trial["rate"] <= CAPACITY) for trial in told)
    assert workload["search"]["kind"] == "found"


def all_busy(here: Site) -> bool:
    """Each worker of the only run runs something."""
    return all(row["busy"] > 1 for row in here.status()["rows"])


#: A service with one server in each of a worker's two processes, 12.5/s in all.
QUEUE = """
import threading
import time

from osprofiler import profiler

from osbench.plugin import scenario

SERVER = threading.Lock()


class Queue(scenario.Scenario):
    @scenario.configure(name="Queue.ask")
    def ask(self):
        with profiler.Trace("lookup"):
            time.sleep(0.005)
        with profiler.Trace("queue"):
            SERVER.acquire()
        try:
            with profiler.Trace("work"):
                time.sleep(0.16)
        finally:
            SERVER.release()
"""


@pytest.fixture(scope="module")
def queued() -> Iterator[tuple[Site, dict[str, Any]]]:
    """A traced search that ends above the rate of a service, and its result."""
    with site() as here, redis_server() as store:
        record = {
            "services": {},
            "profiler_hmac_key": "of-search",
            "profiler_conn_str": store.url,
        }
        here.deployment({"osbench": record})
        search = {"low": 5, "high": 40, "hold": 4, "settle": 0.2, "precision": 0.9}
        workload = {
            "scenario": {"Queue.ask": {}},
            "runner": {"search": search},
            "sla": {"slow_enough": {"rate": 12}},
        }
        for name, text in (("queue.py", QUEUE), ("criterion.py", CRITERION)):
            here.write(f"plugins/{name}", text)
        plugins = str(here.home / "plugins")
        done = here.coord("run", "--json", here.task(workload), "--plugin-path", plugins)
        assert done.code == 0, done.err
        yield here, done.result["workloads"][0]


def test_the_part_of_traces_that_grew_with_the_rate_is_named(
    queued: tuple[Site, dict[str, Any]],
) -> None:
    here, workload = queued
    found = workload["search"]

    assert found["kind"] == "found"
    grown = found["grown_spans"][0]
    assert "queue" in grown["span"]
    assert grown["after_s"] > grown["before_s"]
    assert "more than before" in found["traces"]
    report = " ".join(here.call("results", "last", "--details").out.split())
    assert f"/s: {found['traces']}" in report


class OneAtATime(BaseHTTPRequestHandler):
    """A service with one server, 12.5/s."""

    protocol_version = "HTTP/1.1"
    server_of_all = threading.Lock()

    def do_GET(self) -> None:
        with self.server_of_all:
            time.sleep(0.08)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_without_traces_the_phase_of_requests_that_grew_is_named(here: Site) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneAtATime)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    url = f"http://127.0.0.1:{server.server_port}"
    flow = {"HttpFlow.run": {"steps": [{"name": "order", "path": f"{url}/orders"}]}}
    search = {"low": 5, "high": 40, "hold": 4, "settle": 0.2, "precision": 0.9}
    workload = {
        "scenario": flow,
        "runner": {"search": search},
        "sla": {"slow_enough": {"rate": 12}},
    }
    criterion = str(here.home / "criterion.py")

    done = here.coord("run", "--json", here.task(workload), "--plugin-path", criterion)
    server.shutdown()
    server.server_close()

    assert done.code == 0, done.err
    found = done.result["workloads"][0]["search"]
    assert found["kind"] == "found"
    assert found["traces"].startswith("Iterations take ")
    assert found["traces"].endswith(" % of that is first byte of order.")
    assert found["grown_spans"][0]["span"] == "first byte of order"
    report = " ".join(here.call("results", "last", "--details").out.split())
    assert f"/s: {found['traces']}" in report
    assert "first byte of order: " in report
    assert "of a trace, then" not in report


@pytest.mark.browser
def test_the_page_draws_the_trials_as_a_staircase_and_lists_them(
    queued: tuple[Site, dict[str, Any]], tmp_path: Path
) -> None:
    here, workload = queued
    trials, steps = workload["search"]["trials"], workload["staircase"]["steps"]
    page_file = tmp_path / "report.html"
    page_file.write_text(page_of(read_facts(RunDirectory.find(str(here.data), "last"))), "utf-8")

    with chromium() as browser, watched(browser, page_file.as_uri()) as found:
        page = found.page
        drawn = page.evaluate(
            """(id) => {
              const chart = echarts.getInstanceByDom(document.getElementById(id));
              return chart.getOption().series.map((one) => ({
                data: one.data.map((point) => point.value || point),
              }));
            }""",
            "w1-steps",
        )
        percentiles = page.locator("#w1-stept canvas").bounding_box()
        rows = page.locator('[aria-label="Trials of the search"] tbody tr')
        listed = rows.all_inner_texts()
        said = page.locator("#w1").inner_text()

        assert found.wrong() == []

    points = next(one["data"] for one in drawn if len(one["data"]) == len(steps))
    assert [point[:2] for point in points] == [
        pytest.approx([step["load"], step["throughput"]]) for step in steps
    ]
    assert percentiles["height"] > 100
    assert [("not sustained" not in text) for text in listed] == [one["held"] for one in trials]
    assert "Search for the capacity" in said
    assert workload["search"]["grown_spans"][0]["span"] in said


def test_the_rate_of_a_search_cannot_be_changed_from_outside(here: Site) -> None:
    before = {*here.data.glob("runs/*/status.json")}
    run = here.begin("osbench-coord", "run", *task(here))
    run.wait_for(
        lambda: any(
            "trial" in json.loads(found.read_text("utf-8")).get("search", "")
            for found in {*here.data.glob("runs/*/status.json")} - before
        )
    )

    refused = here.call("control", "--rate", "5")
    run.interrupt()
    done = run.finish()

    assert refused.code == 2
    assert "cannot be changed, as its search decides on it" in refused.err
    (workload,) = done.result["workloads"]
    assert done.code == 130
    assert workload["search"]["kind"] == "unfinished"
