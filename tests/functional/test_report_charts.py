"""Charts of made runs in a real browser: their axes, lines and tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import watched
from helpers.made_runs import made_run
from helpers.report_facts import facts_of
from helpers.sample_loads import stages_workload
from helpers.sample_reports import full_report, run_report
from helpers.shown_page import page_of
from osbench.coordinator.report.run_facts import read_facts

pytestmark = [pytest.mark.functional, pytest.mark.browser]

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
OVER_TIME = ("load", "rates", "fails", "bands", "heat")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of 20 s with 100 iterations a second, most of 40 ms; 1 % failed."""
    folder: Path = tmp_path_factory.mktemp("charts")
    path = folder / "report.html"
    path.write_text(page_of(read_facts(made_run(folder, 2000, rate=100.0))), "utf-8")
    return path.as_uri()


def option(page: Any, name: str) -> dict[str, Any]:
    """What a chart of the first workload draws: names, values, line styles, ends of its axis."""
    found: dict[str, Any] = page.evaluate(
        """(id) => {
          const plot = echarts.getInstanceByDom(document.getElementById(id));
          const { series, yAxis } = plot.getOption();
          return {
            top: yAxis[0].max,
            bottom: yAxis[0].min,
            series: series.map((one) => ({ name: one.name, data: one.data, line: one.lineStyle })),
          };
        }""",
        f"w1-{name}",
    )
    return found


def names(page: Any, name: str) -> set[str]:
    """The names of the series of a chart."""
    return {one["name"] for one in option(page, name)["series"] if one["name"]}


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_users_rates_and_failures_have_axes_of_their_own(
    chromium: Any, url: str, size: dict[str, int]
) -> None:
    with watched(chromium, url, viewport=size) as found:
        page = found.page

        assert names(page, "load") == {"started", "target"}
        assert names(page, "rates") == {"ok"}
        assert names(page, "fails") == {"failed"}
        assert names(page, "hist") == {"ok"}
        assert names(page, "histf") == {"failed"}
        assert page.evaluate("() => document.documentElement.scrollWidth") == size["width"]
        assert found.wrong() == []


def test_labels_of_hooks_stand_before_others_and_bars_of_failures_fill_their_bins(
    chromium: Any, tmp_path: Path
) -> None:
    facts = read_facts(made_run(tmp_path, 2000, rate=100.0))
    assert facts.timeline is not None
    workload = facts.timeline["workloads"][0]
    begins = {"warmup": 4.0, "hook": 5.0, "phase": 5.0}
    workload["marks"] = [
        {"kind": kind, "from_s": at, "to_s": at + 1, "label": f"the {kind}", "text": ""}
        for kind, at in begins.items()
    ]
    workload["spoilt"] = [[4.9, 6.0, 20, 0.5]]
    path = tmp_path / "report.html"
    path.write_text(page_of(facts), "utf-8")

    with watched(chromium, path.as_uri(), viewport=DESK) as found:
        labels, bar, column = found.page.evaluate(
            """() => {
              const of = (id) => echarts.getInstanceByDom(document.getElementById(id));
              const { markLine } = of("w1-load").getOption().series[0];
              const fails = of("w1-fails");
              const data = fails.getModel().getSeriesByIndex(0).getData();
              const at = (x) => fails.convertToPixel({ xAxisIndex: 0 }, x);
              const drawn = [...Array(data.count()).keys()].find((row) => data.get("y", row) > 0);
              return [
                markLine.data.filter((one) => one.label.show).map((one) => one.label.formatter()),
                data.getItemLayout(drawn).width,
                at(data.get("x", 1)) - at(data.get("x", 0)),
              ];
            }"""
        )

        assert labels == ["the hook"]
        assert bar == pytest.approx(0.7 * column, abs=1)
        assert found.wrong() == []


def test_a_chart_under_the_mouse_has_a_cursor_and_no_empty_tip(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        plot = found.page.locator("#w1-load")
        plot.scroll_into_view_if_needed()
        plot.hover(position={"x": 300, "y": 60})
        plot.hover(position={"x": 400, "y": 60})

        boxes = found.page.evaluate(
            """() => {
              const plot = echarts.getInstanceByDom(document.getElementById("w1-load"));
              const parts = plot.getZr().storage.getDisplayList(true);
              // the level of tooltips
              return parts.filter((part) => part.type === "rect" && part.z >= 60)
                .map(({ style }) => [style.stroke, style.fill]);
            }"""
        )
        assert boxes == [["transparent", "transparent"]]
        assert found.wrong() == []


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_counters_stand_on_the_axis_of_latency(
    chromium: Any, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of(facts_of(tmp_path, run_report(stages_workload()))), "utf-8")

    with watched(chromium, path.as_uri(), viewport=size, color_scheme=scheme) as found:
        page = found.page

        assert names(page, "shares") == {"1", "2"}
        shares = option(page, "shares")
        assert (shares["bottom"], shares["top"]) == (0, 1)
        # the fullest first, from 0 s on
        assert shares["series"][0]["data"][0] == [0, 0.4]
        assert shares["series"][0]["data"][-1] == [29, 0.96]
        assert names(page, "queue1") == {"messages ready of mq1"}
        assert page.locator("#w1-queue2").count() == 0
        assert page.evaluate("() => document.documentElement.scrollWidth") == size["width"]
        # the line above the charts has the fullest resource of the moment
        page.locator("#w1-shares").focus()
        page.keyboard.press("ArrowRight")
        assert "memory of db1 50.4 %" in page.locator("#w1-read").inner_text().replace("\n", " ")
        assert found.wrong() == []


def test_a_run_without_failures_has_no_charts_of_them(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of(facts_of(tmp_path, full_report())), "utf-8")

    with watched(chromium, path.as_uri(), viewport=DESK) as found:
        page = found.page

        assert page.locator("#w1-fails").count() == 1
        assert page.locator("#w2-rates").count() == 1
        assert page.locator("#w2-fails, #w2-histf").count() == 0
        assert names(page, "heat") >= {"failed", "cells"}
        assert found.wrong() == []


def zoom(page: Any, seconds: str) -> None:
    """Zoom by the address, and wait until the charts have followed."""
    page.evaluate("(hash) => { location.hash = hash; }", f"w1-timeline?zoom1={seconds}")
    page.wait_for_function(
        """(from) => {
          const plot = echarts.getInstanceByDom(document.getElementById("w1-bands"));
          return Math.abs(plot.getOption().dataZoom[0].startValue - from) < 1e-6;
        }""",
        arg=float(seconds.partition("-")[0]),
    )


def test_a_zoom_scales_the_axes_to_what_is_shown(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        whole = {name: option(page, name) for name in OVER_TIME}
        rows = page.evaluate("() => JSON.parse(data.textContent).workloads[0].p99.rows")
        highest = max(rows, key=lambda row: row[1])[0]
        begin = 1 if highest > 10 else 16
        zoom(page, f"{begin}-{begin + 2}")
        shown = {name: option(page, name) for name in OVER_TIME}

        assert shown["bands"]["top"] < whole["bands"]["top"]
        assert shown["heat"]["top"] <= whole["heat"]["top"]
        for name in ("load", "rates", "bands"):
            for one in shown[name]["series"]:
                at = [point[0] for point in one["data"]]
                assert (min(at), max(at)) == (begin, begin + 2), (name, one["name"])
        page.locator("button[data-do=out]").click()
        page.wait_for_function(
            """(top) => echarts.getInstanceByDom(document.getElementById("w1-bands"))
              .getOption().yAxis[0].max === top""",
            arg=whole["bands"]["top"],
        )
        assert found.wrong() == []


def test_a_zoom_outlives_another_theme(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        zoom(page, "3-5")
        page.locator("#theme").click()
        page.locator("#theme").click()
        begin = page.evaluate(
            """() => echarts.getInstanceByDom(document.getElementById("w1-heat"))
              .getOption().dataZoom[0].startValue"""
        )

        assert begin == 3
        assert page.locator("button[data-do=out]").is_enabled()
        assert found.wrong() == []


@pytest.mark.parametrize("view", ["", "2-18"])
def test_failures_stand_above_the_map_and_cover_no_cell(chromium: Any, url: str, view: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        if view:
            zoom(page, view)
        strip, cells = page.evaluate(
            """() => {
              const plot = echarts.getInstanceByDom(document.getElementById("w1-heat"));
              const drawn = (name) => {
                const at = plot.getOption().series.findIndex((one) => one.name === name);
                const series = plot.getModel().getSeriesByIndex(at);
                const boxes = [];
                plot.getViewOfSeriesModel(series).group.traverse((one) => {
                  if (one.type === "rect") boxes.push(one.shape);
                });
                return boxes;
              };
              return [drawn("failed"), drawn("cells")];
            }"""
        )

        assert len(strip) >= 10
        assert max(one["y"] + one["height"] for one in strip) < min(one["y"] for one in cells)
        assert found.wrong() == []


def test_a_click_on_the_strip_names_failed_iterations_only(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        page.locator("#w1-heat").scroll_into_view_if_needed()
        x = page.evaluate(
            """() => {
              const plot = echarts.getInstanceByDom(document.getElementById("w1-heat"));
              const chart = JSON.parse(data.textContent).workloads[0];
              const column = Math.floor(chart.failed[0][0] / chart.heat.width);
              return plot.convertToPixel({ xAxisIndex: 0 }, (column + 0.5) * chart.heat.width);
            }"""
        )
        page.locator("#w1-heat").click(position={"x": x, "y": 13})
        page.locator("#w1-hits", has_text="that failed").wait_for()
        page.locator("#w1-hits a", has_text="list them").click()

        outcomes = page.locator("#f-body tr td:nth-child(3)").all_inner_texts()
        assert outcomes
        assert set(outcomes) == {"failed"}
        assert found.wrong() == []


def test_paper_has_the_lines_of_the_light_theme_with_their_dashes(chromium: Any, url: str) -> None:
    lines = {}
    for theme in ("light", "dark"):
        with watched(chromium, url, viewport=DESK, color_scheme=theme) as found:
            found.page.emulate_media(media="print")
            found.page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
            drawn = option(found.page, "bands")["series"]
            lines[theme] = [one["line"] for one in drawn if str(one["name"]).startswith("p")]
            found.page.emulate_media(media="screen")
            found.page.wait_for_function("() => !document.documentElement.dataset.theme")
            canvases = found.page.locator(".plot canvas")
            heights = canvases.evaluate_all("(all) => all.map((one) => one.clientHeight)")
            assert min(heights) > 50
            assert found.wrong() == []

    assert lines["light"] == lines["dark"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_of_percentiles_differ_in_colour_and_in_dashes(
    chromium: Any, url: str, theme: str
) -> None:
    with watched(chromium, url, viewport=DESK, color_scheme=theme) as found:
        page = found.page
        lines = {
            one["name"]: one["line"]
            for one in option(page, "bands")["series"]
            if str(one["name"]).startswith("p")
        }

        assert set(lines) == {"p50", "p90", "p95", "p99"}
        assert len({line["color"] for line in lines.values()}) == 4
        assert len({str(line["type"]) for line in lines.values()}) == 4
        assert found.wrong() == []


def test_the_histogram_has_every_iteration_and_the_percentiles(chromium: Any, url: str) -> None:
    with watched(chromium, url, viewport=DESK) as found:
        page = found.page
        marks = page.evaluate(
            """() => echarts.getInstanceByDom(document.getElementById("w1-hist"))
              .getOption().series[0].markLine.data.map((mark) => mark.label.formatter)"""
        )
        ok = sum(row[2] for row in option(page, "hist")["series"][0]["data"])
        failed = sum(row[2] for row in option(page, "histf")["series"][0]["data"])

        assert ok + failed == 2000
        assert 0 < failed < 100
        assert marks == ["p50", "p90", "p95", "p99"]
        assert "log scale" in page.locator("#w1-durations + .say").inner_text()


TABLES = {
    "load": ["from (s)", "scheduled (1/s)", "started (1/s)"],
    "rates": ["from (s)", "ok (1/s)"],
    "fails": ["from (s)", "failed (1/s)"],
    "bands": ["middle of the bin (s)", "iterations ok", "p50 (s)", "p90 (s)", "p95 (s)",
              "p99 (s)", "max (s)"],
    "hist": ["from (s)", "to (s)", "ok", "failed"],
}  # fmt: skip


def test_tables_are_copied_as_plain_numbers_with_units_in_the_head(chromium: Any, url: str) -> None:
    permissions = {"permissions": ["clipboard-read", "clipboard-write"]}
    with watched(chromium, url, viewport=DESK, **permissions) as found:
        page = found.page
        for name, heads in TABLES.items():
            twin = page.locator(f"#w1-{name}-twin")
            twin.locator("> summary").click()
            twin.locator("button").click()
            twin.locator("button", has_text="Copied").wait_for()
            copied = page.evaluate("() => navigator.clipboard.readText()")
            head, *rows = csv.reader(io.StringIO(copied))

            assert head == heads
            assert len(rows) + 1 == twin.locator("tr").count()
            # an empty cell is a number that is not known
            assert all(cell == "" or float(cell) >= 0 for row in rows for cell in row)
        assert found.wrong() == []
