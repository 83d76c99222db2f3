"""The report of a real run in a real browser: what it shows, and what it must never do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import watched
from helpers.runs import Site, site
from helpers.shown_page import page_of
from osbench.coordinator.report.html import live_parts
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_facts import RunFacts, read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import redis_server
from servers.traced_shop import KEY, traced_shop

pytestmark = [pytest.mark.functional, pytest.mark.browser]

HOSTILE = "</script><img src=x onerror=alert(1)>"
SECRET = "hunter2-planted"
SECTIONS = ("overview", "w1", "w2", "traces", "iterations", "about")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}

SCENARIO = f'''
import requests
from osprofiler import profiler
from osbench.plugin import atomic, scenario


class OutOfStock(Exception):
    pass


@scenario.configure(name="Shop.buy")
class Buy(scenario.Scenario):
    """Buys something."""

    def run(self, url, password="", note=""):
        number = self.context["iteration"]
        with atomic.ActionTimer(self, "shop.buy"):
            requests.get(f"{{url}}/buy", headers=self.trace_headers(), timeout=30)
        with atomic.ActionTimer(self, {HOSTILE!r}):
            self.add_output(additive={{
                "title": "Basket {HOSTILE}", "chart_plugin": "Pie",
                "data": [["lamps", number], ["{HOSTILE}", 2]]}})
            self.add_output(additive={{
                "title": "Stock", "chart_plugin": "StackedArea", "data": [["left", 500 - number]]}})
        if number == 1:
            self.add_output(complete={{
                "title": "Receipt", "chart_plugin": "TextArea", "data": [{HOSTILE!r}]}})
        if number % 20 == 3:
            raise OutOfStock("{HOSTILE} http://buyer:{SECRET}@shop/lamp")
'''


class Parts(HTMLParser):
    """Names of all elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def facts() -> Iterator[RunFacts]:
    """A run of an open and a closed load with failures, a hook, outputs and traces."""
    with site() as here:
        plugins = {"plugin_path": here.write("plugins/shop.py", SCENARIO).parent}
        here.configure({"worker": plugins, "coordinator": plugins})
        with (
            redis_server(password=SECRET) as store,
            # far longer than what a busy machine adds
            traced_shop(here.home, store.url, planted_s=0.5, every=10) as address,
        ):
            record: dict[str, Any] = {
                "services": {"shop": address},
                "profiler_hmac_key": KEY,
                "profiler_conn_str": store.url,
            }
            here.deployment({"osbench": record})
            done = here.run(_task(here, address))
            assert done.code == 1, done.err
        yield read_facts(RunDirectory.find(str(here.data), "last"))


def _task(here: Site, address: str) -> str:
    args = {"url": address, "password": SECRET, "note": HOSTILE}
    event = {"event": {"unit": "iteration", "at": [40]}}
    hook = {
        "description": HOSTILE,
        "action": {"sys_call": f"echo '{HOSTILE}'"},
        "trigger": event,
    }
    return here.task(
        {
            "title": "Visitors",
            "scenario": {"Shop.buy": args},
            "runner": {"constant": {"times": 700, "concurrency": 2}},
            "sla": {"failure_rate": {"max": 10}},
        },
        {
            "title": HOSTILE,
            "scenario": {"Shop.buy": args},
            "runner": {"rps": {"rps": 60, "times": 300, "timeout": 30}},
            "sla": {
                "failure_rate": {"max": 1},
                "percentile": {"p": 95, "max_s": 20, "of": "response"},
            },
            "hooks": [hook],
        },
    )


@pytest.fixture(scope="module")
def html(facts: RunFacts) -> str:
    return page_of(facts)


@pytest.fixture(scope="module")
def url(html: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, "utf-8")
    return path.as_uri()


def test_two_calls_give_the_same_bytes(facts: RunFacts, html: str) -> None:
    assert page_of(read_facts(facts.directory)) == html
    assert len(html.encode()) < 2_000_000


def test_no_secret_and_no_style_or_handler_is_in_it(html: str) -> None:
    parts = Parts()
    parts.feed(html)

    assert SECRET not in html
    assert KEY not in html
    assert "--connection-string redis://127.0.0.1:" in html
    assert "style" not in parts.attributes
    assert not [name for name in parts.attributes if name.startswith("on")]
    assert not parts.tags & {"img", "link", "iframe", "object", "base", "form"}
    assert "img src=x" in html


def drawn(page: Any) -> None:
    """Wait until the page has drawn what follows from an event."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


@pytest.mark.parametrize(("size", "theme"), [(DESK, "dark"), (PHONE, "light")])
def test_every_section_is_shown_without_a_word_of_the_console(
    chromium: Any, url: str, theme: str, size: dict[str, int]
) -> None:
    with watched(chromium, url, viewport=size, color_scheme=theme) as found:
        page = found.page
        for section in SECTIONS:
            assert page.locator(f"#{section}").is_visible(), section
        assert page.locator(".plot canvas").count() >= 8
        # through all themes, and back
        for _ in range(3):
            page.locator("#theme").click()
        drawn(page)
        width = page.evaluate("() => document.documentElement.scrollWidth")

        assert width == size["width"]
        assert found.wrong() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium: Any, url: str, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with watched(chromium, url, viewport=DESK, color_scheme=theme) as found:
        for trace in found.page.locator("details").all()[:40]:
            trace.evaluate("details => { details.open = true; }")
        results = axe.Axe().run(found.page)

    violations = results.response["violations"]
    serious = [one for one in violations if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_without_scripts_the_verdict_leads_and_tables_open(chromium: Any, url: str) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport=DESK)
    page = context.new_page()
    page.goto(url)
    lines = [line for line in page.locator("body").inner_text().splitlines() if line.strip()]
    page.locator("#w1-bands-twin > summary").click()
    rows = page.locator("#w1-bands-twin tr").count()
    page.locator("#traces details.trace > summary").first.click()
    spans = page.locator("#traces details.trace[open] .wf details").count()
    error = page.locator("#w2 details.error").inner_text()
    context.close()

    assert any("Not met." in line for line in lines[:20])
    assert rows > 1
    assert spans > 3
    assert "OutOfStock" in error


def test_without_styles_the_verdict_is_in_the_first_lines_of_text(html: str) -> None:
    body = html.partition("<body>")[2]
    text = re.sub(r"<[^>]+>", " ", body)
    lines = [line for line in text.splitlines() if line.strip()]

    assert any("Not met." in line for line in lines[:20])


def test_foreign_text_stays_text(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))

        assert HOSTILE in page.locator("#w2-h").inner_text()
        assert HOSTILE in page.locator("#w2 details.error .m").inner_text()
        assert page.locator("#w1-tables th", has_text=HOSTILE).count() >= 1
        assert page.locator("#w1 figcaption", has_text=f"Basket {HOSTILE}").count() == 1
        assert HOSTILE in page.locator("#w1 .output pre", has_text="onerror").first.inner_text()
        assert page.locator("#traces .wf .name", has_text="onerror").count() >= 1
        assert page.locator("img").count() == 0
        assert dialogs == []
        assert found.wrong() == []


def test_the_planted_lock_is_named_on_the_first_screen(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        why = found.page.locator("[aria-labelledby=why-h]")

        assert "row lock" in why.inner_text()
        assert why.bounding_box()["y"] < DESK["height"]


def _pixel_of_example(page: Any) -> dict[str, Any]:
    """Return the pixel of an example in the heat map of the second workload, and the example.

    It is the example that is drawn last: no other lies on it, however the latencies fell.
    """
    found: dict[str, Any] = page.evaluate(
        """() => {
          const plot = echarts.getInstanceByDom(document.getElementById("w2-heat"));
          const points = plot.getOption().series.find((one) => one.name === "examples").data;
          const point = points.at(-1);
          const [x, y] = plot.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, point.value);
          return { x, y, example: point.example };
        }"""
    )
    return found


def test_a_click_on_the_heat_map_leads_to_its_example(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        page.locator("#w2-heat").scroll_into_view_if_needed()
        point = _pixel_of_example(page)
        page.locator("#w2-heat").click(position={"x": point["x"], "y": point["y"]})
        opened = page.locator(f"#t-{point['example']['id']}")
        opened.wait_for()

        assert page.url.endswith(f"#t-{point['example']['id']}")
        assert opened.get_attribute("open") is not None
        assert f"iteration {point['example']['iteration']}" in opened.inner_text()
        page.go_back()
        assert not page.url.endswith(f"#t-{point['example']['id']}")
        assert found.wrong() == []


def test_charts_are_read_zoomed_and_searched_by_keyboard(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        read = page.locator("#w2-read")
        page.locator("#w2-load").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        first = read.inner_text()
        page.keyboard.press("End")
        last = read.inner_text()
        out = page.locator('button[data-workload="1"][data-do=out]')
        page.keyboard.press("+")
        zoomed = out.is_enabled()
        page.keyboard.press("Escape")
        drawn(page)

        assert "started" in first
        assert "p95" in first
        assert first != last
        assert zoomed
        assert not out.is_enabled()
        page.keyboard.press("Enter")
        assert re.search(r"\d+ iterations? .* scheduled at", page.locator("#w2-hits").inner_text())
        assert found.wrong() == []


def test_all_iterations_are_listed_with_their_trace_ids(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        body = page.locator("#f-body")
        assert "1,000 of 1,000" in page.locator("#f-count").inner_text()
        page.locator("#f-query").fill("failed")
        failed = page.locator("#f-count").inner_text()
        trace = body.locator("td").last.inner_text()
        page.locator("#f-query").fill(trace[:9])

        assert failed.startswith("50 of 1,000")
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", trace)
        assert body.locator("tr").count() == 1


def test_tables_are_copied_as_csv_that_is_no_formula(chromium: Any, url: str) -> None:
    permissions = {"permissions": ["clipboard-read", "clipboard-write"]}
    with watched(chromium, url, viewport=DESK, **permissions) as found:
        page = found.page
        twin = page.locator("#w1-load-twin")
        twin.locator("> summary").click()
        twin.locator("button").click()
        page.locator("#w1-load-twin button", has_text="Copied").wait_for()
        copied = page.evaluate("() => navigator.clipboard.readText()")

        assert copied.splitlines()[0].startswith('"from (s)","virtual users in use"')
        assert len(copied.splitlines()) == twin.locator("tr").count()


def test_it_prints_with_light_colours(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK, color_scheme="dark") as found:
        page = found.page
        page.emulate_media(media="print")
        paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")

        heights = page.evaluate(
            "() => [...document.querySelectorAll('.plot canvas')].map((one) => one.clientHeight)"
        )

        assert paper == "rgb(255, 255, 255)"
        assert min(heights) > 50
        assert not page.locator(".bar").is_visible()
        assert len(page.pdf(format="A4")) > 20_000


def test_counters_come_to_a_page_that_is_open(
    chromium: Any, facts: RunFacts, tmp_path: Path
) -> None:
    path = tmp_path / "live.html"
    path.write_text(page_of(facts, live=True), "utf-8")
    _, charts = live_parts(gather(facts, live=True))
    values = [0.5, None, 1.0]
    counters = {
        "step": charts[1]["end"] / 2,
        "caption": "each with its number",
        "shares": [{"label": HOSTILE, "values": values}],
        "queues": [{"label": HOSTILE, "unit": "/s", "values": values}],
    }
    table = {"w2-counters-part": '<details class="twin"><summary>A table</summary></details>'}
    with_them = [{**chart, "counters": counters, "html": table} for chart in charts]

    with watched(chromium, path.as_uri(), viewport=PHONE, color_scheme="dark") as found:
        page = found.page
        shown = page.locator("#w1-shares"), page.locator("#w2-queue1"), page.locator("#w1-queue3")
        assert not any(one.is_visible() for one in shown)
        page.evaluate("(charts) => osbench.update({charts})", with_them)
        after = [one.is_visible() for one in shown]
        widths = page.evaluate(
            """() => ["w1-shares", "w1-load"].map((id) =>
              echarts.getInstanceByDom(document.getElementById(id)).getWidth())"""
        )
        captions = page.locator("#w1-timeline ~ figure > figcaption").all_inner_texts()
        page.evaluate("(charts) => osbench.update({charts})", charts)
        gone = [one.is_visible() for one in shown]
        page.locator("#theme").click()
        page.evaluate("(charts) => osbench.update({charts})", with_them)

        assert after == [True, True, False]
        assert gone == [False, False, False]
        assert [one.is_visible() for one in shown] == after
        # the same axis
        assert widths[0] == widths[1] > 100
        assert "System under test\neach with its number" in captions
        assert f"{HOSTILE}\n/s" in captions
        assert page.locator("#w2-counters-part button").count() == 1
        assert found.wrong() == []


def test_a_page_that_is_open_takes_new_numbers(
    chromium: Any, facts: RunFacts, tmp_path: Path
) -> None:
    path = tmp_path / "live.html"
    path.write_text(page_of(facts, live=True), "utf-8")
    overview, charts = live_parts(gather(facts, live=True))
    for chart in charts:
        heat, middle_s = chart["heat"], chart["end"] / 2
        # in the middle: a zoom shows it
        middle = min(heat["cells"], key=lambda cell: abs(cell[0] * heat["width"] - middle_s))
        heat["cells"] = [middle]
    changed = overview.replace("planned", "foreseen")

    with watched(chromium, path.as_uri(), viewport=DESK) as found:
        page = found.page
        page.locator("#w2 details.error > summary").first.click()
        page.locator('button[data-workload="1"][data-do=in]').click()
        frame = {"overview": changed, "charts": charts}
        page.evaluate("(frame) => osbench.update(frame)", frame)
        cells = page.evaluate(
            """() => echarts.getInstanceByDom(document.getElementById("w2-heat"))
              .getOption().series.find((one) => one.name === "cells").data.length"""
        )

        assert "foreseen" in page.locator("#overview").inner_text()
        assert cells == 1
        # what the reader has done stays
        assert page.locator("#w2 details.error").first.get_attribute("open") is not None
        assert page.locator('button[data-workload="1"][data-do=out]').is_enabled()
        assert HOSTILE in page.locator("#w2 details.error .m").inner_text()
        assert found.wrong() == []
