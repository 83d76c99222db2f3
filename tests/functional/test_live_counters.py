"""Counters of the system under test on the live page, during real runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.live_browser import Browsed
from helpers.runs import Cluster, Site, Started, site
from helpers.web import printed_address
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_file import read_counters
from servers.prometheus_server import node_exporter, prometheus

pytestmark = [pytest.mark.functional, pytest.mark.browser]

COLLECTORS = ("cpu", "diskstats", "meminfo", "netdev", "pressure", "uname")


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def started(here: Site, url: str, *more: dict[str, dict[str, Any]]) -> Started:
    """A run that goes on until it is ended, with a live page; `more` is configuration."""
    here.configure({"metrics": {"prometheus": url, "late_s": 1}}, *more)
    workload = {
        "scenario": {"Dummy.dummy": {"sleep": 0.05}},
        "runner": {"constant_for_duration": {"duration": 300, "concurrency": 2}},
    }
    return here.begin("osbench-coord", "run", "--json", here.task(workload), "--web", "0")


def test_counters_of_this_host_come_to_the_live_page(
    fleet: Cluster, guest: Site, chromium: object
) -> None:
    with node_exporter(COLLECTORS) as exporter, prometheus({"db1:9100": exporter}) as server:
        run = started(guest, server.url, fleet.messaging)
        address = printed_address(run)
        with Browsed.opened(chromium) as tab:
            tab.goto(address)
            tab.expect_count("#w1-load", 1)
            # without a reload
            assert_counters(tab, "live-counters")
        with Browsed.opened(chromium, 390, "dark") as tab:
            # a page that is loaded later begins with them
            tab.goto(address)
            assert_counters(tab, "live-counters-phone")
        run.interrupt()
        done = run.finish()

    assert done.code == 130
    counters = done.result["workloads"][0]["counters"]
    assert {"CPU", "memory"} <= {one["name"] for one in counters}


def assert_counters(tab: Browsed, name: str) -> None:
    """A page comes to show counters, fits its screen, and suits people."""
    tab.wait_until(lambda: tab.width("#w1-shares") > 100)
    assert tab.width("#w1-shares") == tab.width("#w1-load")
    tab.expect_text("#w1-counters-part", "memory")
    tab.assert_fits()
    assert tab.serious() == []
    tab.shoot(name)
    tab.assert_clean()


def test_a_run_that_is_killed_keeps_what_was_read(here: Site) -> None:
    with node_exporter(COLLECTORS) as exporter, prometheus({"db1:9100": exporter}) as server:
        run = started(here, server.url)
        printed_address(run)
        run.wait_for(lambda: any(map(read_counters, RunDirectory.all(str(here.data)))))
        run.process.kill()
        run.process.wait()

    page = here.home / "page.html"
    assert here.call("report", "last", "--html", str(page)).code == 0
    assert "System under test" in page.read_text("utf-8")


def test_a_prometheus_that_hangs_is_told_on_the_page_and_costs_nothing_else(
    fleet: Cluster, guest: Site, tab: Browsed
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"http://anna:s3cret-word@127.0.0.1:{port}"
        run = started(guest, url, fleet.messaging)
        tab.goto(printed_address(run))
        tab.wait_until(lambda: tab.done() > 20)
        silent.accept()[0].close()

        tab.expect_text("#w1-counters-part", "are not up to date")
        tab.expect_text("#w1-counters-part", "They are tried again.")
        before = tab.done()
        tab.wait_until(lambda: tab.done() > before + 20)
        tab.expect_text("#live-log-line", "1 warning")
        assert "s3cret-word" not in tab.text("body")
        tab.assert_clean()
        silent.close()
        run.interrupt()
        done = run.finish()

    assert done.code == 130
    assert done.sums["lost"] == 0
    (note,) = [one for one in done.result["notes"] if one.startswith("counters")]
    assert "could not be read from" in note
