"""Ctrl-C during a run: once lets iterations end, twice stops at once; the sums hold."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Started, by_iteration, checked, site
from servers import CountingServer, redis_server

pytestmark = pytest.mark.functional

TIMES = 3000
CLOSED = {"constant": {"times": TIMES, "concurrency": 4}}
OPEN = {"rps": {"times": TIMES, "rps": 20}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


def start(cluster: Cluster, counting: CountingServer, runner: dict[str, Any], *how: str) -> Started:
    """Start a run against the counting server and wait for its first requests."""
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    task = cluster.site.task(
        {"scenario": {"HttpRequests.check_request": request}, "runner": runner}
    )
    run = cluster.site.begin("osbench-coord", "run", *how, task)
    run.wait_for(lambda: counting.counts.total() >= 4)
    return run


@pytest.mark.parametrize(
    ("runner", "how"), [(CLOSED, signal.SIGINT), (OPEN, signal.SIGTERM)], ids=["constant", "rps"]
)
def test_once_lets_running_iterations_end_and_prints_the_report(
    cluster: Cluster, counting: CountingServer, runner: dict[str, Any], how: signal.Signals
) -> None:
    counting.delay_s = 0.5
    run = start(cluster, counting, runner)

    run.process.send_signal(how)

    done = run.finish()
    again = cluster.site.coord("results", "last", "--json").printed
    sums = checked(again["workloads"][0])
    assert done.code == again["exit_code"] == 130
    assert sums["planned"] == TIMES
    assert sums["lost"] == 0
    assert sums["not_started"] > 0
    assert "stopping" in done.err
    for said in ("HttpRequests.check_request", "not started", "Exit code 130"):
        assert said in done.out
    ran = by_iteration(cluster.site.rows("last"), "ok")
    assert len(ran) == sums["ok"]
    # what was running has ended and is reported; what is not reported was never started
    assert set(counting.counts) == ran
    assert set(counting.counts.values()) == {1}
    cluster.await_idle(2)
    assert cluster.run_keys() == set()


def test_twice_stops_at_once_and_says_what_was_lost(
    cluster: Cluster, counting: CountingServer
) -> None:
    here = cluster.site
    counting.delay_s = 600
    run = start(cluster, counting, CLOSED, "--json")

    # an iteration without end is named
    place = r"; longest: iteration \d+ on \S+: \d+ s in \S+, at \w+\.py:\d+ \(.+\)"
    run.await_said("; longest: iteration ")
    shown: list[str] = []

    def is_named() -> bool:
        # it may be a second older than what was said
        shown.append(here.coord("status").out)
        return bool(re.search(place, shown[-1]))

    run.wait_for(is_named)
    run.interrupt()
    run.await_said("Ctrl-C again stops at once")
    run.interrupt()
    done = run.finish()

    assert re.search(r"; figures of \d+ s ago", shown[-1])
    (said,) = [line for line in done.err.splitlines() if "Ctrl-C again stops at once" in line]
    assert re.search(place, said), said
    sums = done.sums
    assert done.code == 130
    assert sums["planned"] == TIMES
    assert sums["lost"] >= 4
    assert sums["ok"] == 0
    assert set(counting.counts.values()) == {1}
    assert len(counting.counts) <= sums["lost"]
    assert "Traceback" not in done.err
    assert cluster.run_keys() == set()


def test_before_the_load_the_report_has_what_was_planned(cluster: Cluster) -> None:
    task = cluster.site.task(
        {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 7, "concurrency": 1}}}
    )
    run = cluster.site.begin("osbench-coord", "run", "--json", "--workers", "3", task)
    run.await_said("run ")

    run.interrupt()

    done = run.finish()
    assert done.code == 130
    assert done.sums["planned"] == done.sums["not_started"] == 7
    assert done.result["workloads"][0]["not_begun"] == "the run was interrupted before"
    assert done.result["notes"] == [
        "Dummy.dummy was not begun: the run was interrupted before",
        "interrupted before there was load",
    ]
    assert "Traceback" not in done.err
    cluster.await_idle(2)
    assert cluster.run_keys() == set()


HANGING = """
import pathlib
import threading

from osbench.plugin import context


class Hanging(context.Context):
    NAME = "hanging"

    def setup(self):
        pathlib.Path(self.config["begun"]).touch()
        if self.config["hangs"] == "setup":
            threading.Event().wait()

    def cleanup(self):
        if self.config["hangs"] == "cleanup":
            threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("setup", ["stopping: ", "stopping at once"]),
        ("cleanup", ["stopping: ", "stopping at once", "stopping without any further wait"]),
    ],
)
def test_a_context_that_hangs_is_left_after_enough_of_ctrl_c(
    cluster: Cluster, at: str, said: list[str]
) -> None:
    here = cluster.site
    plugins = here.write("hanging/hanging.py", HANGING).parent
    begun = here.home / f"begun-{at}"
    task = here.task(
        {
            "scenario": {"Dummy.dummy": {"sleep": 0.02}},
            "runner": {"constant_for_duration": {"duration": 600, "concurrency": 2}},
            "contexts": {"hanging": {"hangs": at, "begun": str(begun)}},
        }
    )
    run = here.start("osbench-coord", "run", "--json", "--plugin-path", str(plugins), task)
    run.wait_for(begun.exists)
    if at == "cleanup":
        run.await_said("Dummy.dummy running: ")

    for text in said:
        if text == said[-1]:
            doing = "setting up" if at == "setup" else "undoing"
            run.await_said(f"{doing} context hanging")
            # it may be a second older than what was said
            run.wait_for(lambda: "context hanging for " in here.coord("status").out)
        run.interrupt()
        if text != said[-1]:
            run.await_said(text)
    done = run.finish()

    assert said[-1] in done.err
    assert done.code == 130, done.err
    (note,) = [note for note in done.result["notes"] if "is not undone" in note]
    assert note.startswith("context hanging is not undone: ")
    assert "`osbench-coord cleanup" in note
    cluster.await_idle(2)
