"""Pages of the web server on screens from 320 to 1600 px, in both themes, by keyboard, on paper."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.live_browser import Browsed
from helpers.made_runs import made_run
from helpers.web import held, serving, snapshot, worker_progress
from osbench.coordinator.front.web.run_starts import RunStarts
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.progress import RecentProgress

pytestmark = [pytest.mark.functional, pytest.mark.browser]

WIDTHS = (320, 390, 768, 1280, 1600)
FIRST, SECOND, LIVE = (f"20260401-1{hour}0000-000{hour}" for hour in (1, 2, 3))
#: Addresses of the server, and an element that is there once the page is complete.
PAGES = {
    "list": ("/", "#live-list tr"),
    "start": ("/start", "button[data-task]"),
    "report": (f"/runs/{FIRST}", "#w1-load canvas"),
    "live": (f"/runs/{LIVE}", ".live-load dd"),
    "trends": (f"/runs/{SECOND}/trends", "svg"),
    "compare": (f"/compare?run={FIRST}&run={SECOND}", "table"),
}


@contextlib.contextmanager
def served(data: Path) -> Iterator[str]:
    """A server of two finished runs and one that is running; the address of its list."""
    for number, run in enumerate((FIRST, SECOND, LIVE)):
        made = made_run(data, 5000, run=run, seed=number)
    resumable.begin_again(made)
    recent = RecentProgress(
        span_s=5.0, rate=80.0, p50_s=0.1, p95_s=0.2, failed=0, failed_share=0.0, error=""
    )
    shown = dataclasses.asdict(snapshot(rows=(worker_progress(),), recent=recent))
    trail = [[float(second), 80.0, 0.1, 0.2] for second in range(40)]
    (data / "tasks").mkdir()
    (data / "tasks" / f"a-{'very-' * 12}long-name.yaml").write_text("{}", "utf-8")
    starts = RunStarts(str(data), lambda: "20260401-140000-0004")
    with held(made), serving(data, starts=starts) as server:
        made.write("status.json", {**shown, "trail": trail})
        yield server.token_url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_suits_screens_people_and_paper(
    tmp_path: Path, chromium: Any, theme: str
) -> None:
    with served(tmp_path) as url, Browsed.opened(chromium, theme=theme) as tab:
        tab.goto(url)
        host = url.split("/?")[0]
        for name, (address, complete) in PAGES.items():
            tab.goto(host + address)
            tab.wait_until(lambda complete=complete: tab.count(complete) > 0)
            for width in WIDTHS:
                tab.resize(width)
                tab.assert_fits()
                assert tab.count("a[href='/']") or name == "list"
                assert tab.count("a[href='/start']") or name == "live"
                if width in (390, 1280):
                    assert tab.serious() == [], (name, width)
                    tab.shoot(f"sizes-{name}-{width}-{theme}")
            reached = tab.focused_by_tab(12)
            assert len(set(reached)) >= min(len(reached), 4), (name, reached)
            assert all(reached), (name, reached)
            tab.print_on_paper()
            tab.assert_fits()
            tab.print_on_paper(over=True)
            tab.assert_clean()
