"""`results --outputs`: charts added up, and those of one iteration."""

import io
import json

import msgpack
import pytest
from click.testing import CliRunner
from rich.console import Console

from helpers.result_rows import row_of
from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.front.cli.commands.results import results
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.report.chart_text import chart_text
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def invoke(tmp_path):
    """Call `results last` of a run with a workload whose iteration N has a chart of N."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    directory.write("summary.json", to_json(full_report()))
    directory.write("run.json", {"workloads": [{"scenario": "A.b"}, {"scenario": "A.c"}]})
    directory.keep([block(0, (1, 2)), block(1, (2,)), block(0, (2,), add=100)])
    directory.close()
    group = Group(commands=[results])

    def call(*args):
        return CliRunner().invoke(group, ["results", "last", *args, "--config-file", str(conf)])

    return call


def block(workload, numbers, add=0):
    def outputs(number):
        text = {"title": "Log", "chart_plugin": "TextArea", "data": [f"line {number + add}"]}
        area = {"title": "Area", "chart_plugin": "Lines", "data": [["a", number + add]]}
        items = ({"kind": "complete", "item": text}, {"kind": "additive", "item": area})
        return [msgpack.packb(item) for item in items]

    rows = [row_of(n, Outcome.OK, 0, 1, 2, 0, 0, (), (b"", outputs(n), b"")) for n in numbers]
    columns = encode_rows(rows, (), 0)
    return {"workload": workload, "incarnation": "w", "columns": columns, "failures": []}


def test_the_charts_of_an_iteration_are_those_of_the_row_that_settled_it(invoke):
    text = invoke("--outputs", "2").stdout
    found = json.loads(invoke("--outputs", "2", "--json").stdout)["outputs"]

    assert "0. A.b  iteration 2" in text
    assert "line 2" in text and "line 102" not in text
    assert [(one["name"], one["additive"][0]["data"]) for one in found] == [
        ("A.b", [["a", 2]]),
        ("A.c", [["a", 2]]),
    ]


def test_without_an_iteration_the_charts_are_added_up(invoke):
    text = invoke("--outputs").stdout
    found = json.loads(invoke("--json", "--outputs").stdout)["outputs"]

    assert "Log (TextArea) of 40 iterations, the first 1" in text
    assert "no charts" in text
    assert [chart["chart_plugin"] for chart in found[0]["additive"]] == [
        "StatsTable",
        "StackedArea",
        "Pie",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--outputs", "3"], "no workload of run 20260401-a has iteration 3"),
        (["--outputs", "2", "--csv"], "cannot be combined with --csv"),
    ],
)
def test_what_cannot_be_shown_is_said(invoke, args, message):
    found = invoke(*args)

    assert found.exit_code == 2
    assert message in found.output


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ([["a", [[1, 2], [2, 6]]], ["b", []]], "a 2 2 4.00 6 6"),
        ([["a", -1.5], ["b", "n/a"]], "b n/a"),
        ({"cols": ["x", "y"], "rows": [["one", 1], ["two", 2]]}, "two 2"),
        (["one\x1b[2J", {"k": 1}], 'one\\x1b[2J {"k": 1}'),
        ("<p>\nhello</p>", "<p> hello</p>"),
        ({"trace_id": "abc", "taskID": "t"}, "trace abc"),
        ({"other": [1]}, '{"other": [1]}'),
        ([], ""),
    ],
)
def test_every_shape_of_chart_has_a_text(data, shown):
    file = io.StringIO()

    Console(width=100, file=file).print(
        chart_text({"title": "t", "chart_plugin": "Any", "data": data})
    )

    assert shown in " ".join(file.getvalue().split())
