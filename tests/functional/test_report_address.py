"""The address of a page holds its view: copied it opens the same, and Back returns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import watched
from helpers.drawn_traces import page_with_trace
from helpers.made_runs import made_run
from helpers.shown_page import page_of
from helpers.synthetic_traces import Work
from osbench.coordinator.report.run_facts import read_facts

pytestmark = [pytest.mark.functional, pytest.mark.browser]

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("address")
    path = folder / "report.html"
    path.write_text(page_of(read_facts(made_run(folder, 2000, rate=100.0))), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("traced")
    path = folder / "report.html"
    root = Work(name="osbench.iteration", start=0, length=50)
    path.write_text(page_with_trace(folder, root), "utf-8")
    return path.as_uri()


def view(page: Any) -> dict[str, Any]:
    """What a reader sees of all that stands in the address."""
    found: dict[str, Any] = page.evaluate(
        """() => {
          const heat = echarts.getInstanceByDom(document.getElementById("w1-heat"));
          const [zoom] = heat.getOption().dataZoom;
          const sorted = document.querySelector("#f-table [aria-sort]");
          return {
            zoom: [zoom.startValue, zoom.endValue].map((value) => Math.round(value * 1e3) / 1e3),
            zoomed: !document.querySelector("button[data-do=out]").disabled,
            query: document.getElementById("f-query").value,
            order: [sorted.dataset.order, sorted.getAttribute("aria-sort")],
            count: document.getElementById("f-count").textContent,
            page: document.getElementById("f-page").textContent,
            rows: document.getElementById("f-body").textContent,
          };
        }"""
    )
    return found


def settled(page: Any, pattern: str) -> None:
    """Wait until the address is of a form, and the charts are drawn for it."""
    page.wait_for_url(re.compile(pattern))
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_copied_address_opens_the_same_view(
    chromium: Any, url: str, size: dict[str, int]
) -> None:
    with watched(chromium, url, viewport=size) as found:
        page = found.page
        page.locator("button[data-do=in]").click()
        settled(page, "zoom1=")
        page.locator("#f-query").fill(">30ms")
        page.locator("#f-table th[data-order=iteration] button").click()
        page.locator("#f-next").click()
        settled(page, "page=2")
        address, seen = page.url, view(page)
        assert found.wrong() == []

    with watched(chromium, address, viewport=size) as found:
        settled(found.page, "page=2")

        assert view(found.page) == seen
        assert seen["zoomed"]
        assert seen["order"] == ["iteration", "ascending"]
        assert seen["page"].startswith("page 2 of ")
        assert found.page.url == address
        assert found.wrong() == []


def test_back_returns_to_each_view_before(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        seen = [view(page)]
        # typed letters are one step
        page.locator("#f-query").press_sequentially("failed")
        settled(page, "q=failed$")
        seen.append(view(page))
        page.locator("#f-table th[data-order=due] button").click()
        settled(page, "sort=due")
        seen.append(view(page))
        page.locator("button[data-do=in]").click()
        settled(page, "zoom1=")
        seen.append(view(page))
        assert len({str(one) for one in seen}) == 4

        for steps, before in enumerate(reversed(seen[:-1]), 1):
            page.go_back()
            settled(page, ("sort=due$", "q=failed$", "html$")[steps - 1])
            assert view(page) == before
        page.go_forward()
        settled(page, "q=failed$")
        assert view(page) == seen[1]
        assert found.wrong() == []


def test_a_part_of_the_heat_map_is_in_the_address(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        page.locator("#w1-load").focus()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.locator("#w1-hits a", has_text="list them").click()
        settled(page, "#iterations.*range=")
        address, seen = page.url, view(page)
        assert "one part of the heat map" in seen["count"]

    with watched(chromium, address, viewport=DESK) as found:
        assert view(found.page) == seen
        assert found.wrong() == []


def test_an_open_trace_is_in_the_address(chromium: Any, traced: str) -> None:
    with watched(chromium, traced, viewport=DESK) as found:
        page = found.page
        trace = page.locator("#traces details.trace")
        trace.locator("> summary").click()
        settled(page, "#t-")
        address = page.url
        page.go_back()
        settled(page, "html$")
        assert trace.get_attribute("open") is None
        page.go_forward()
        settled(page, "#t-")
        assert trace.get_attribute("open") is not None
        trace.locator("> summary").click()
        settled(page, "html$")

    with watched(chromium, address, viewport=DESK) as found:
        trace = found.page.locator("#traces details.trace")
        assert trace.get_attribute("open") is not None
        assert trace.bounding_box()["y"] < DESK["height"]
        assert found.wrong() == []


def test_links_of_headings_keep_the_rest_of_the_view(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        page.locator("button[data-do=in]").click()
        settled(page, "zoom1=")
        page.locator("#w1-durations a").click()
        settled(page, r"#w1-durations\?zoom1=")
        head = page.locator("#w1-durations").bounding_box()["y"]

        assert 0 <= head < DESK["height"] / 2
        assert view(page)["zoomed"]
        page.go_back()
        settled(page, r"#\?zoom1=")
        assert view(page)["zoomed"]
        assert found.wrong() == []


#: Addresses that name nothing, or nothing that a page has.
BAD = (
    "#nowhere",
    "#%E0%A4%A",
    "#w1?zoom1=5-1",
    "#w1?zoom1=-3-1e9",
    "#w1?zoom1=1-99999",
    "#w1?zoom1=NaN-Infinity",
    "#w1?zoom99=1-2",
    "#iterations?sort=constructor",
    "#iterations?sort=-__proto__",
    "#iterations?workload=77",
    "#iterations?workload=-1",
    "#iterations?page=0",
    "#iterations?page=1e3",
    "#iterations?range=5_1_0_9",
    "#iterations?range=1_2_3_4_5_6",
    "#iterations?workload=1&range=a_b_c_d",
    "#%22%3E%3Cscript%3Ealert(1)%3C/script%3E?q=&zoom1=%00",
)


def test_bad_values_of_an_address_are_ignored(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        usual = view(page)
        for bad in BAD:
            # an address that differs in its hash alone would not be loaded
            page.goto("about:blank")
            page.goto(url + bad)
            settled(page, "html")

            assert view(page) == usual, bad
            refused = page.evaluate("globalThis.violations")
            assert (found.said, refused) == ([], []), bad
        assert {asked for asked in found.asked if not asked.startswith(url)} == set()


def test_what_an_address_looks_for_is_text(chromium: Any, url: str) -> None:
    with watched(chromium, f"{url}#iterations?q=%3Cimg%20src=x%3E&page=9", viewport=DESK) as found:
        page = found.page

        assert page.locator("#f-body").inner_text().strip() == "Nothing found for “<img src=x>”."
        assert page.locator("#f-page").inner_text() == "page 1 of 1"
        assert page.locator("img").count() == 0
        assert found.wrong() == []
