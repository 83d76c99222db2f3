"""The live view of runs in trouble, in a real browser: failures, lost workers, logs."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from helpers.live_browser import Browsed
from helpers.runs import Cluster, site
from helpers.web import printed_address
from servers import redis_server

pytestmark = [pytest.mark.functional, pytest.mark.browser]

FAILING = {
    "scenario": {"Dummy.dummy_random_fail_in_atomic": {"exception_probability": 0.5}},
    "runner": {"rps": {"rps": 50, "times": 100_000}},
    "sla": {"failure_rate": {"max": 0}},
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


def counted(tab: Browsed) -> int:
    """Failures of the first row."""
    found = re.search(r"[\d,]+", tab.text("#live-failures tbody td.bad"))
    return int(found.group().replace(",", "")) if found else 0


def test_failures_and_lost_workers_are_shown_while_the_run_goes_on(
    cluster: Cluster, tab: Browsed
) -> None:
    task = cluster.site.task(FAILING)
    run = cluster.site.begin("osbench-coord", "run", "--json", "--web", "0", task)
    tab.goto(printed_address(run))

    tab.expect_text("#live-failures", re.compile(r"KeyError\s.*failed on purpose"))
    tab.expect_text("#live-failures", re.compile("dummy_fail_test|dummy_fail_inner_test"))
    before = counted(tab)
    tab.wait_until(lambda: counted(tab) > before)
    tab.expect_text("#live-now", re.compile(r"[\d,]+ of [\d,]+ threads"))

    supervisor = cluster.workers[1]
    for process in (cluster.child_of(supervisor), supervisor.process.pid):
        os.kill(process, signal.SIGKILL)

    tab.expect_text("#live-now", re.compile(r"(silent|lost), unheard for \d+ s"))
    tab.expect_text("#live-now", re.compile(r"workers: 1 lost, 1 running"))
    tab.expect_text("#live-log-line", re.compile(r"\d+ lines, \d+ warning"))
    tab.click(".log summary")
    tab.expect_text("#live-log", re.compile("lost", re.I))
    tab.choose("#live-level", "error")
    assert tab.shown("#live-log li") == []
    tab.choose("#live-level", "warning")
    assert "lost" in " ".join(tab.shown("#live-log li"))
    tab.assert_fits()
    assert tab.serious() == []
    tab.shoot("live-troubles")
    tab.assert_clean()
    tab.accept_dialogs()
    tab.click("#live-abort")
    assert run.finish().code == 130
