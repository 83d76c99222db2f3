"""Pages of made runs in a real browser: what depends on sizes, clicks and keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.browser import watched
from helpers.drawn_traces import page_with_trace
from helpers.made_runs import made_run
from helpers.queue_runs import Queue, side
from helpers.report_facts import facts_of
from helpers.sample_reports import constant_workload, rps_workload, run_report
from helpers.shown_page import page_of
from helpers.synthetic_traces import Work
from helpers.web import TOKENS, serving
from osbench.coordinator.report.run_facts import read_facts
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.evidence import Evidence

pytestmark = [pytest.mark.functional, pytest.mark.browser]

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def written(folder: Path, html: str) -> str:
    """The address of a page."""
    path = folder / "report.html"
    path.write_text(html, "utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("failing", "lines"), [(30, 30), (3, 3)])
def test_thirty_workloads_fit_four_screens(
    chromium: Any, tmp_path: Path, failing: int, lines: int
) -> None:
    held = [replace(constant_workload(), name=f"Shop.held_{n}") for n in range(30 - failing)]
    failed = [replace(rps_workload(), title=f"Failed {n}") for n in range(failing)]
    url = written(tmp_path, page_of(facts_of(tmp_path, run_report(*held, *failed))))

    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        begins = page.locator("#main").bounding_box()["y"]
        shown = page.locator("#overview .figures tbody tr:visible")

        assert begins <= 4 * DESK["height"]
        assert shown.count() == lines
        assert "Failed" in shown.first.inner_text()
        if held:
            page.locator("#overview details.held > summary").click()
            assert shown.count() == 30
        assert page.evaluate("() => document.documentElement.scrollWidth") == DESK["width"]
        assert found.wrong() == []


@pytest.mark.parametrize("scrolled", [0, 200, 9999])
def test_verdicts_of_a_comparison_are_in_sight_on_a_phone(
    chromium: Any, tmp_path: Path, scrolled: int
) -> None:
    queue, chance = Queue(duration_s=60), np.random.default_rng(1)
    before, after = (side(queue, chance, name, 3) for name in "AB")
    result = compare_sides(Evidence(before=before, after=after))
    url = written(tmp_path, compare_page(result))

    with watched(chromium, url, viewport=PHONE) as found:
        page = found.page
        page.locator(".scroll").evaluate(f"(table) => table.scrollBy({scrolled}, 0)")
        verdict = page.locator(".scroll tbody td").last

        box = verdict.bounding_box()
        assert verdict.inner_text().endswith("no evidence")
        assert 0 < box["x"] < box["x"] + box["width"] <= PHONE["width"]
        assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
        assert found.wrong() == []


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_iterations_are_sorted_by_their_heads_and_found_by_their_error(
    chromium: Any, tmp_path: Path, size: dict[str, int]
) -> None:
    url = written(tmp_path, page_of(read_facts(made_run(tmp_path, 1000))))

    with watched(chromium, url, viewport=size) as found:
        page = found.page
        rows = page.locator("#f-body tr")
        heads = page.locator("#f-table th[aria-sort]")
        assert heads.inner_text().strip() == "latency"
        assert heads.get_attribute("aria-sort") == "descending"
        for asked, first in (("ascending", "1"), ("descending", "1,000")):
            page.locator("#f-table th[data-order=iteration] button").click()
            assert heads.get_attribute("aria-sort") == asked
            assert rows.first.locator("td").first.inner_text() == first

        page.locator("#f-query").fill("gatewaytimeout: http 5")
        assert "GatewayTimeout: HTTP 504" in rows.first.inner_text()
        assert rows.first.locator("td").nth(2).inner_text() == "failed"
        page.locator("#f-query").fill("no such thing")
        assert rows.all_inner_texts() == ["Nothing found for “no such thing”."]
        assert found.wrong() == []


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_names_of_300_letters_wrap(chromium: Any, tmp_path: Path, size: dict[str, int]) -> None:
    name = "Long" * 75
    facts = facts_of(tmp_path, run_report(replace(rps_workload(), title=name)))
    workload = facts.summary["workloads"][0]
    workload["actions"] = {name: next(iter(workload["actions"].values()))}
    workload["errors"][0].update(type=name, message=name)

    with watched(chromium, written(tmp_path, page_of(facts)), viewport=size) as found:
        page = found.page
        width = page.locator("#w1-tables th.name", has_text="Long").first.bounding_box()["width"]

        assert page.evaluate("() => document.documentElement.scrollWidth") == size["width"]
        assert width < 500
        assert page.locator("#w1-errors ~ details .m").first.bounding_box()["width"] < size["width"]
        assert found.wrong() == []


def test_repeated_spans_of_a_large_trace_open_on_a_click(chromium: Any, tmp_path: Path) -> None:
    steps = [Work(name="step 8", start=at, length=0.5) for at in range(4900)]
    root = Work(name="osbench.iteration", start=0, length=5000)
    root.add(*steps, Work(name="commit", start=4950, length=20))

    url = written(tmp_path, page_with_trace(tmp_path, root))
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        page.locator("#traces details.trace > summary").click()
        lines = page.locator("#traces .wf summary:visible")
        assert lines.count() == 3
        fold = page.locator("#traces .wf details.fold")
        assert "step 8 \u00d7 4,900" in fold.inner_text()
        assert "2.45" in fold.inner_text()
        fold.locator("> summary").click()

        assert 3 < lines.count() < 200
        assert "4,850 more of them." in fold.inner_text()
        assert found.wrong() == []


def test_wide_tables_of_a_phone_say_that_they_scroll(chromium: Any, tmp_path: Path) -> None:
    url = written(tmp_path, page_of(facts_of(tmp_path)))
    hint = "(one) => getComputedStyle(one, '::before').content"

    hints = []
    for size in (DESK, PHONE):
        with watched(chromium, url, viewport=size) as found:
            wide = found.page.locator("#w1-tables [aria-label='Workers']")
            hints.append(wide.evaluate(hint))
            assert (
                found.page.evaluate("() => document.documentElement.scrollWidth") == size["width"]
            )
            assert found.wrong() == []

    assert hints[0] == "none"
    assert "Scroll sideways" in hints[1]


def test_paper_has_no_heading_without_text_and_says_what_is_left_out(
    chromium: Any, tmp_path: Path
) -> None:
    root = Work(name="osbench.iteration", start=0, length=50)
    url = written(tmp_path, page_with_trace(tmp_path, root))

    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        assert not page.locator(".paper").is_visible()
        page.emulate_media(media="print")
        bare = page.evaluate(
            """() => [...document.querySelectorAll("h2, h3, .group")]
              .filter((head) => head.offsetHeight)
              .filter((head) => {
                let next = head.nextElementSibling;
                while (next && !next.offsetHeight) next = next.nextElementSibling;
                return !next || next.matches("h2, h3");
              })
              .map((head) => head.textContent)"""
        )

        assert "the table of iterations" in page.locator(".paper").inner_text()
        assert "traces that are not open" in page.locator(".paper").inner_text()
        assert bare == []
        assert found.wrong() == []


def test_the_command_that_shows_a_trace_in_osprofiler_is_copied(
    chromium: Any, tmp_path: Path
) -> None:
    root = Work(name="osbench.iteration", start=0, length=50)
    html = page_with_trace(tmp_path, root, store="redis://:hunter2@traces:6379/1?a=b&c=$(x)")
    permissions = {"permissions": ["clipboard-read", "clipboard-write"]}

    assert "hunter2" not in html
    with watched(chromium, written(tmp_path, html), viewport=PHONE, **permissions) as found:
        page = found.page
        page.locator("#traces details.trace > summary").click()
        page.locator("#traces button[data-copy]").click()
        page.locator("#traces button", has_text="Copied").wait_for()
        copied = page.evaluate("() => navigator.clipboard.readText()")
        trace = page.locator("#traces .wf .id").last.inner_text()

        assert copied == (
            f"osprofiler trace show --html {trace}"
            " --connection-string 'redis://traces:6379/1?a=b&c=$(x)'"
        )
        assert page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
        assert found.wrong() == []


def test_a_run_without_a_trace_store_has_no_command_for_osprofiler(tmp_path: Path) -> None:
    root = Work(name="osbench.iteration", start=0, length=50)

    assert "data-copy" not in page_with_trace(tmp_path, root).partition('id="data"')[0]


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_page_of_a_run_leads_to_the_trend_of_its_task(
    chromium: Any, tmp_path: Path, size: dict[str, int]
) -> None:
    names = [f"2026040{day}-101500-abcd" for day in range(1, 10)]
    for seed, name in enumerate(names, 1):
        made_run(tmp_path, 300, run=name, seed=seed)
    bearer = {"Authorization": f"Bearer {TOKENS.token}"}

    with (
        serving(tmp_path) as server,
        watched(
            chromium, f"{server.url}runs/{names[4]}", viewport=size, extra_http_headers=bearer
        ) as found,
    ):
        page = found.page
        page.locator("a", has_text="trend of this task").click()
        page.locator("figure svg.series").first.wait_for()

        assert page.url.endswith(f"/runs/{names[4]}/trends")
        assert "9 runs" in page.locator("h2").first.inner_text()
        page.locator("summary").click()
        assert page.evaluate("() => document.documentElement.scrollWidth") == size["width"]
        page.locator("th a", has_text=names[0]).click()
        page.locator("#overview").wait_for()
        assert page.url.endswith(f"/runs/{names[0]}")
        assert found.said == []
