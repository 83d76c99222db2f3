"""Runs that are started from the page in a real browser, with the real commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.live_browser import Browsed
from helpers.runs import Site, site
from helpers.web import printed_address

pytestmark = [pytest.mark.functional, pytest.mark.browser]

TASK = {
    "version": 2,
    "title": "From the page",
    "subtasks": [
        {
            "title": "One",
            "scenario": {"Dummy.dummy": {"sleep": 0.02}},
            "runner": {"constant_for_duration": {"duration": 600, "concurrency": 2}},
        }
    ],
}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def runs(here: Site) -> list[Path]:
    return sorted(here.data.glob("runs/*"))


def test_a_run_is_started_from_the_page_and_run_again(here: Site, tab: Browsed) -> None:
    tasks = here.data / "tasks"
    tasks.mkdir()
    (tasks / "good.json").write_text(json.dumps(TASK))
    # a name that nobody knows would have all that Rally has imported
    (tasks / "bad.yaml").write_text("Dummy.dummy: [{runner: {times: many}}]")
    (tasks / "link.yaml").symlink_to("/etc/passwd")
    web = here.begin("osbench-coord", "web", "--listen", "0")
    tab.goto(printed_address(web))
    tab.click("a[href='/start']")
    assert "link.yaml" not in tab.text("body")

    # problems are told, and nothing begins
    tab.click("button[data-task='bad.yaml']")
    tab.expect_text("#start-said", re.compile("bad.yaml has problems.*many", re.S))
    tab.click("button[data-check='good.json']")
    tab.expect_text("#start-said", "good.json is a task that can be run")
    tab.assert_fits()
    assert tab.serious() == []
    assert runs(here) == []

    tab.click("button[data-task='good.json']")
    tab.expect_text("#live-state", re.compile(r"running, \d+ s, connected"))
    tab.wait_until(lambda: tab.done() > 20)
    (first,) = runs(here)
    assert tab.url.endswith(f"/runs/{first.name}")

    # one at a time
    started = tab.url
    tab.goto(started.replace(f"/runs/{first.name}", "/start"))
    tab.click("button[data-task='good.json']")
    tab.expect_text("#start-said", f"run {first.name} is running")

    # it goes on without the server
    web.interrupt()
    assert web.finish().code == 0
    web = here.begin("osbench-coord", "web", "--listen", "0")
    tab.goto(printed_address(web))
    tab.expect_text("#live-list", re.compile("running"))
    tab.click(f"a[href='/runs/{first.name}']")
    before = tab.done()
    tab.wait_until(lambda: tab.done() > before)
    tab.accept_dialogs()
    tab.click("#live-abort")
    tab.expect_count("#live", 0)

    # and once more
    tab.click("a[href^='/start?again=']")
    tab.wait_until(lambda: not here.private())
    tab.click("button[data-again]")
    tab.expect_text("#live-state", re.compile(r"running, \d+ s, connected"))
    _, second = runs(here)
    assert tab.url.endswith(f"/runs/{second.name}")
    asked = [json.loads((one / "run.json").read_text()) for one in (first, second)]
    assert asked[0]["workloads"] == asked[1]["workloads"]
    tab.click("#live-abort")
    tab.expect_count("#live", 0)
    # a browser notes refusals, which were asked for, as errors
    assert tab.violations() == []
    web.interrupt()
    assert web.finish().code == 0
    here.await_nothing_left()


def test_a_run_that_does_not_begin_is_told(here: Site, chromium: Any) -> None:
    tasks = here.data / "tasks"
    tasks.mkdir()
    (tasks / "good.json").write_text(json.dumps(TASK))
    here.configure({"messaging": {"redis_url": "redis://u:planted-1@127.0.0.1:1/0"}})
    made = here.coord("keys", "new")
    assert made.code == 0, made.err
    web = here.begin("osbench-coord", "web", "--listen", "0")
    with Browsed.opened(chromium, 390, "dark") as tab:
        tab.goto(printed_address(web))
        tab.click("a[href='/start']")
        tab.shoot("start")
        tab.click("button[data-task='good.json']")

        tab.expect_text("#start-output", re.compile("127.0.0.1:1"))
        if tab.count("#start-stop"):
            tab.click("#start-stop")
        tab.expect_text("#start-state", re.compile("before it had begun"))
        tab.expect_text("h1", "The run did not begin")
        assert "planted-1" not in tab.text("body")
        tab.assert_fits()
        assert tab.serious() == []
        tab.shoot("starting")
    assert runs(here) == []
    web.interrupt()
    assert web.finish().code == 0
