"""Charts of scenarios on the page: figures, tables, text, and pages of a scenario's own."""

from pathlib import Path

import msgpack
import pytest

from helpers.result_rows import row_of
from helpers.shown_page import page_of
from helpers.stored_runs import stored_run
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.coordinator.report.html import output_views
from osbench.coordinator.report.html.output_views import OutputView
from osbench.coordinator.report.model.workload_parts import Outputs
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.accounting.charts import Charts


def complete(kind: str, data: object) -> OutputView:
    chart = {"title": "t", "chart_plugin": kind, "iterations": 1, "first_iteration": 3}
    (found,) = output_views.output_views("w", Outputs(complete=(chart,)), {("t", kind): data})
    return found


def test_a_chart_plug_in_that_only_rally_knows_is_drawn_as_lines() -> None:
    chart = {"title": "t", "chart_plugin": "Waterfall", "data": [["a", [[1, 1], [2, 3]]]]}

    (found,) = output_views.output_views("w", Outputs(additive=(chart,)), {})

    assert (found.figure, found.heads) == ("lines", ["iteration", "a"])
    assert found.rows == [["1", "1"], ["2", "3"]]


def test_an_embedded_chart_is_a_page_of_its_own() -> None:
    found = complete("EmbeddedChart", "<p>one</p>")

    assert (found.page, found.text) == ("<p>one</p>", "")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("EmbeddedChart", "x" * (output_views.PAGE + 1)),
        ("EmbeddedChart", ["<p>"]),
        ("EmbeddedExternalChart", "http://report.example/1"),
        ("TextArea", ["<p>"]),
    ],
)
def test_what_is_no_page_is_text(kind: str, data: object) -> None:
    found = complete(kind, data)

    assert found.page == ""
    assert 0 < len(found.text) <= output_views.TEXT


@pytest.mark.parametrize(
    "data",
    [
        [["a", [[1, float("nan")]]]],
        [["a", [[[1], 2]]]],
        [["a", float("inf")]],
        [{b"key": 1, "other": 2}],
        {b"key": 1, "other": 2},
    ],
)
def test_data_that_cannot_be_drawn_is_text(data: object) -> None:
    found = complete("Lines", data)

    assert (found.figure, found.rows) == ("", [])
    assert found.text


def test_a_table_shows_numbers_that_are_not_finite() -> None:
    found = complete("Table", {"cols": ["a", "b"], "rows": [[float("nan"), float("-inf")]]})

    assert found.rows == [["nan", "-inf"]]


def test_a_page_of_a_scenario_is_in_a_frame_without_scripts(tmp_path: Path) -> None:
    item = {"title": "Map", "chart_plugin": "EmbeddedChart", "data": '<p class="x">one</p>'}
    packed = msgpack.packb({"kind": "complete", "item": item})
    rows = [row_of(1, 1, 0, 0, 1_000_000, 0, 0, (), (b"", [packed], b""))]
    charts = Charts()
    charts.add(decode_rows(encode_rows(rows, (), 0)))
    run = stored_run(tmp_path, rows, charts=charts)

    html = page_of(read_facts(run.directory))

    assert '<iframe sandbox srcdoc="&lt;p class=&#34;x&#34;&gt;one&lt;/p&gt;" title="Map"' in html
