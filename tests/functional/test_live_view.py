"""The live view in a real browser, during real runs on two workers."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.live_browser import Browsed
from helpers.machine import Machine
from helpers.made_runs import made_run
from helpers.readme import blocks
from helpers.runs import Cluster, Started, site
from helpers.web import held, printed_address, serving, snapshot, worker_progress
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.progress import CriterionState, FailureProgress
from osbench.coordinator.results.storage.run_documents import write_summary
from osbench.coordinator.results.storage.run_log import RunLog
from servers import Child, folder, redis_server

pytestmark = [pytest.mark.functional, pytest.mark.browser]

TIMES = 100_000
HOSTILE = "</script><img src=x onerror=alert(1)>"
WORKLOAD = {
    "scenario": {"Dummy.dummy": {"sleep": 0.02}},
    "runner": {"constant": {"times": TIMES, "concurrency": 4}},
    "sla": {"failure_rate": {"max": 0}},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers for all runs; the last one is killed, and has them wait."""
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


def start(cluster: Cluster, *options: str) -> Started:
    cluster.await_idle(2)
    task = cluster.site.task({**WORKLOAD, "title": HOSTILE})
    return cluster.site.begin("osbench-coord", "run", "--json", task, *options)


def test_a_run_is_watched_reloaded_and_aborted(cluster: Cluster, tab: Browsed) -> None:
    run = start(cluster, "--web", "0")
    tab.goto(printed_address(run))

    tab.expect_text("#live-state", re.compile(r"running, \d+ s, connected"))
    assert "token" not in tab.url
    # numbers move: those of the server now, and those of the report
    before, points = tab.done(), tab.points()
    tab.wait_until(lambda: tab.done() > before + 50)
    tab.wait_until(lambda: tab.points() > points + 4)
    assert len(tab.worker_rows()) == 2

    # history is in the run directory: a page that is loaded again begins with all of it
    seen_s = tab.seconds_at_load()

    def is_longer() -> bool:
        tab.reload()
        return tab.seconds_at_load() > seen_s

    # the next checkpoint may be late on a busy machine
    tab.wait_until(is_longer)
    tab.expect_text("#live-state", re.compile("connected"))
    tab.shoot("live-run")

    tab.accept_dialogs()
    tab.click("#live-abort")
    done = run.finish()

    assert done.code == 130
    sums = done.sums
    assert sums["lost"] == 0
    assert 0 < sums["ok"] < TIMES
    tab.expect_text("#live-state", "the run has ended with exit code 130")
    tab.expect_disabled("#live-abort")
    # the whole page at once, and no token but in the one address
    assert done.err.count("?token=") == 1
    tab.assert_clean()


def test_figures_of_a_workload_are_once_on_the_page(cluster: Cluster, tab: Browsed) -> None:
    cluster.await_idle(2)
    first = {**WORKLOAD, "runner": {"constant": {"times": 200, "concurrency": 4}}}
    task = cluster.site.task(first, WORKLOAD)
    run = cluster.site.begin("osbench-coord", "run", "--json", task, "--web", "0")
    tab.goto(printed_address(run))

    def is_divided() -> bool:
        """Of the workload that has ended in the report, of the other above it."""
        rows = "#overview .figures tbody th a"
        return (len(tab.shown(rows)), tab.count(rows), tab.count(".live-load")) == (1, 2, 1)

    # between the two workloads none is under load
    tab.wait_until(is_divided)
    tab.assert_clean()

    tab.accept_dialogs()
    tab.click("#live-abort")
    assert run.finish().code == 130
    tab.wait_until(lambda: len(tab.shown("#overview .figures tbody th a")) == 2)


def test_a_load_is_changed_from_the_page(cluster: Cluster, tab: Browsed) -> None:
    run = start(cluster, "--web", "0")
    tab.goto(printed_address(run))
    tab.accept_dialogs("many", "2")

    tab.click("#live-now button:text('Users')")
    tab.expect_text("#live-state", re.compile("many is not a number"))
    tab.click("#live-now button:text('Users')")
    tab.expect_text("#live-state", re.compile("2 virtual users"))
    tab.click("#live-now button:text('Pause')")
    tab.expect_text("#live-now", re.compile("paused"))
    tab.click("#live-now button:text('Go on')")
    tab.expect_text("#live-now", re.compile("running"))
    tab.assert_clean()
    tab.click("#live-abort")
    done = run.finish()

    assert done.code == 130
    labels = [mark["label"] for mark in cluster.site.marks(done.result["run_id"])]
    assert any("2 virtual users" in label for label in labels), labels


def test_a_run_ends_by_itself_although_it_is_watched(cluster: Cluster, tab: Browsed) -> None:
    cluster.await_idle(2)
    # the second one is long enough for a busy browser to load the page again
    runners = [{"constant_for_duration": {"duration": s, "concurrency": 2}} for s in (2, 45)]
    task = cluster.site.task(*({**WORKLOAD, "runner": runner} for runner in runners))
    run = cluster.site.begin("osbench-coord", "run", "--json", "--quiet", "--web", "0", task)
    tab.goto(printed_address(run))
    tab.expect_text("#live-state", re.compile("connected"))
    # the section of a workload comes when it begins
    tab.expect_count("#w2-load", 1)

    done = run.finish()

    assert done.code == 0
    tab.expect_text("#live-state", "the run has ended with exit code 0")
    tab.assert_clean()


def test_the_page_becomes_the_report_and_stays_until_ctrl_c(cluster: Cluster, tab: Browsed) -> None:
    cluster.await_idle(2)
    runner = {"constant_for_duration": {"duration": 2, "concurrency": 2}}
    task = cluster.site.task({**WORKLOAD, "runner": runner})
    options = ("--json", "--web", "0", "--web-linger")
    run = cluster.site.begin("osbench-coord", "run", *options, task)
    tab.goto(printed_address(run))

    run.await_said("until Ctrl-C")
    tab.expect_count("#traces", 1)
    tab.reload()
    tab.expect_count("#iterations", 1)
    tab.assert_clean()
    run.interrupt()
    done = run.finish()

    assert done.code == 0
    assert done.sums["ok"] > 0


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_pages_suit_screens_and_people(
    tmp_path: Path, chromium: Any, width: int, theme: str
) -> None:
    run = made_run(tmp_path, 5000)
    resumable.begin_again(run)
    rows = (
        worker_progress(host_cpu=0.4),
        worker_progress("host-b:8", state="silent", cpu=0.97, silent_s=2.5, coroutines=True),
        worker_progress("host-c:9", state="lost", silent_s=12.0, users=0, busy=0, cpu=0.0),
        worker_progress("host-d:9", state="left"),
    )
    failures = tuple(
        FailureProgress(type=name, message="no answer " * 30, count=7, step="buy " * 9, status=503)
        for name in ("Refused", "R" * 120)
    )
    criteria = (CriterionState(name="failure_rate", met=False, detail="1 of 40 failed"),)
    status = dataclasses.asdict(
        snapshot(rows=rows, sla=criteria, failures=failures, failure_kinds=30)
    )
    with RunLog(run) as log:
        log.say(f"a {'very ' * 40}long sentence")
        logging.getLogger("osbench").error("an error: %s", "x" * 300)
    with (
        held(run),
        serving(tmp_path) as server,
        Browsed.opened(chromium, width, theme) as tab,
    ):
        run.write("status.json", status)
        tab.goto(server.token_url)
        tab.expect_text("#live-state", "1 run, 1 running, connected")
        tab.assert_fits()
        assert tab.serious() == []
        tab.shoot(f"list-{width}-{theme}")

        tab.click(f"a[href='/runs/{run.path.name}']")
        tab.expect_text("#live-state", "running, 3 s, connected")
        tab.expect_text("#live-now", "host-b:8")
        tab.expect_text("#live-log-line", "2 lines, 1 error")
        tab.wait_until(lambda: tab.width("#live-failures td.name") > 50)
        tab.click(".log summary")
        tab.assert_fits()
        assert tab.serious() == []
        tab.shoot(f"live-{width}-{theme}")

        # the theme that the reader chooses is that of all of the page
        before = tab.background()
        tab.click("#theme")
        tab.wait_until(lambda: tab.background() != before or theme == "light")
        if theme == "light":
            tab.click("#theme")
        tab.wait_until(lambda: tab.background() != before)
        tab.assert_clean()


def test_a_page_of_a_server_that_ends_with_its_run_stays(tmp_path: Path, tab: Browsed) -> None:
    run = made_run(tmp_path, 5000)
    summary = run.read("summary.json")
    resumable.begin_again(run)
    run.write("status.json", dataclasses.asdict(snapshot()))
    with serving(tmp_path, only=run.path.name) as server, held(run) as holder:
        tab.goto(server.token_url)
        tab.expect_text("#live-state", "running, 3 s, connected")

        # by the last news there is a workload that the page has no section for
        write_summary(run, {**summary, "workloads": summary["workloads"] * 2})
        holder.kill()

        tab.expect_text("#live-state", "the run has ended with exit code 0")
        tab.expect_count("#w1-load", 1)
        tab.assert_clean()


def listed(cluster: Cluster) -> tuple[Started, str, Started, str]:
    """A server of all runs with its address, and a run that it lists as running, with its id."""
    web = cluster.site.begin("osbench-coord", "web", "--listen", "0")
    url = printed_address(web)
    run = start(cluster)
    run.wait_for(lambda: "running" in cluster.site.coord("runs", "list").out)
    return web, url, run, json.loads(cluster.site.coord("status", "--json").out)["run"]


def test_all_runs_are_listed_followed_and_opened(cluster: Cluster, tab: Browsed) -> None:
    web, url, run, run_id = listed(cluster)

    tab.goto(url)
    tab.expect_text("#live-list", re.compile("running"))
    tab.shoot("live-list")
    tab.click(f"a[href='/runs/{run_id}']")
    tab.expect_text("#live-state", re.compile("connected"))
    tab.wait_until(lambda: tab.done() > 50)
    run.interrupt()
    assert run.finish().code == 130
    # the page becomes the report
    tab.expect_count("#live", 0)
    tab.expect_text("body", re.compile("130"))
    tab.goto(url)
    tab.expect_text("#live-list", re.compile(f"interrupted.*{run_id}", re.S))
    tab.assert_clean()

    web.interrupt()
    assert web.finish().code == 0


def test_no_page_of_another_site_reaches_a_run(cluster: Cluster, tab: Browsed) -> None:
    run = start(cluster, "--web", "0")
    url = printed_address(run)
    tab.goto(url)
    tab.expect_text("#live-state", re.compile("connected"))
    run_page = tab.url

    # the browser has the cookie; a page of another origin (the port does not matter) tries
    with tab.foreign_site() as foreign:
        assert foreign.post(f"{run_page}/abort") == "refused"
        assert foreign.frame(run_page) == "refused"
        assert foreign.read(f"{run_page}/frames") == "refused"

    tab.wait_until(lambda: tab.done() > 20)
    assert run.process.poll() is None
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(run_page)
    run.interrupt()
    assert run.finish().code == 130


def test_a_killed_run_is_shown_as_it_was(cluster: Cluster, tab: Browsed) -> None:
    _, url, run, run_id = listed(cluster)
    tab.goto(url)
    tab.click(f"a[href='/runs/{run_id}']")
    tab.wait_until(lambda: tab.done() > 50)

    run.process.kill()
    run.process.wait()

    tab.expect_count("#live", 0)
    tab.expect_text("body", re.compile("killed"))
    tab.goto(url)
    tab.expect_text("#live-list", re.compile(f"resumable.*{run_id}", re.S))
    tab.assert_clean()


def test_the_commands_of_the_page_on_it_serve_what_it_says() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        machine = Machine(home, folder=desk, forked=True)
        one, every = blocks("live-view", "docs/live-view.md")

        with machine.running(one) as terminal:
            page = opened(terminal)
            assert "Abort the run" in page
            # the address is there a little before the run is
            while not list(home.rglob("run.json")):
                assert terminal.process.poll() is None, terminal.tail()
                time.sleep(0.05)
        with machine.running(every) as terminal:
            page = opened(terminal)
            assert "<h1>Runs</h1>" in page
            assert "Dummy.dummy" in page


def opened(terminal: Child) -> str:
    """The page at the address that a command in a terminal has printed."""
    while not (found := re.search(r"http://\S+\?token=\S+", terminal.log.read_text("utf-8"))):
        assert terminal.process.poll() is None, terminal.tail()
        time.sleep(0.05)
    jar = urllib.request.HTTPCookieProcessor()
    with urllib.request.build_opener(jar).open(found.group(), timeout=60) as answer:
        return str(answer.read().decode())
