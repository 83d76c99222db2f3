"""Charts of every shape in the forms that Rally's import and its reports take."""

import importlib
import json

import hypothesis.strategies as st
import msgpack
import numpy as np
import pytest
from hypothesis import given
from jsonschema import Draft4Validator

from helpers.result_rows import row_of
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.charts import Charts
from osbench.edges.rally import importing
from osbench.edges.rally.results.rally_charts import TRACE, of_hook, of_iteration


def chart(kind, data, **more):
    return {"title": "t", "chart_plugin": kind, "data": data, **more}


ADDITIVE = [
    chart("Pie", [["a", 1], ["b", "no number"], ["c"], None]),
    chart("StatsTable", "no list"),
    chart("Table", [["a", 1]]),
    chart("Lines", [["a", float("nan")], ["b", 2.5]], label="l", extra="unknown to Rally"),
]
COMPLETE = [
    chart("EmbeddedChart", "<p>one</p>"),
    chart("EmbeddedExternalChart", "http://report.example/1"),
    chart("OSProfiler", {"trace_id": "abc", "taskID": "x"}),
    chart("Lines", [["a", [[1, 2], [2, 3]]]], axis_label=None),
    chart("Table", {"cols": ["x"], "rows": [[1], ["two"]]}),
    chart("TextArea", ["a line"]),
    chart("Pie", [["a", b"bytes"]], description=7),
    chart("Table", {"cols": ["x"], "rows": [[None]]}),
]


def test_charts_of_iterations_keep_what_rally_can_draw_and_show_the_rest_as_text():
    found = of_iteration({"additive": ADDITIVE, "complete": COMPLETE}, None)

    assert [one["data"] for one in found["additive"]] == [[["a", 1]], [["b", 2.5]]]
    assert found["additive"][1] == chart("Lines", [["b", 2.5]], label="l")
    assert [(one["chart_plugin"], one["data"]) for one in found["complete"]] == [
        ("TextArea", ["no list"]),
        ("TextArea", ['["a", 1]']),
        ("TextArea", ["<p>one</p>"]),
        ("TextArea", ["http://report.example/1"]),
        ("TextArea", ["abc"]),
        ("Lines", [["a", [[1, 2], [2, 3]]]]),
        ("Table", {"cols": ["x"], "rows": [[1], ["two"]]}),
        ("TextArea", ["a line"]),
        ("Pie", [["a", "bytes"]]),
        ("Table", {"cols": ["x"], "rows": [[None]]}),
    ]


def test_a_trace_id_is_told_once():
    told = of_iteration({"additive": [], "complete": []}, "abc")
    scenario = [{**chart("OSProfiler", {"trace_id": "def"}), "title": TRACE}]

    kept = of_iteration({"additive": [], "complete": scenario}, "abc")

    assert told["complete"] == [{"title": TRACE, "chart_plugin": "TextArea", "data": ["abc"]}]
    assert [one["data"] for one in kept["complete"]] == [["def"]]


def test_rally_takes_them():
    if not importing.load():
        pytest.skip("the extra osbench[rally] is not installed")
    charts = importlib.import_module("rally.task.processing.charts")
    schema = importlib.import_module("rally.common.objects.task").TASK_SCHEMA
    given = {"additive": ADDITIVE, "complete": COMPLETE}

    iteration, hook = of_iteration(given, "abc"), of_hook(given)

    for kind, items in iteration.items():
        assert [charts.validate_output(kind, item) for item in items] == [None] * len(items)
    Draft4Validator(schema["definitions"]["output"]).validate(hook)
    assert hook["complete"][-1]["chart_plugin"] == "TextArea"


def added_up(kind, iterations):
    """The data of the only chart of some iterations, in ours and in Rally's form."""
    rows = [
        row_of(
            *(number, Outcome.OK, 0, 1, 2, 0, 0, ()),
            (b"", [msgpack.packb({"kind": "additive", "item": chart(kind, pairs)})], b""),
        )
        for number, pairs in enumerate(iterations, 1)
    ]
    ours = Charts()
    ours.add(decode_rows(encode_rows(rows, (), 0)))
    cls = importlib.import_module("rally.common.plugin.plugin").Plugin.get(kind)
    theirs = cls({"total_iteration_count": len(iterations)}, title="t")
    for pairs in iterations:
        theirs.add_iteration(pairs)
    (found,) = ours.to_dict()["additive"]
    return found["data"], json.loads(json.dumps(theirs.render()["data"]))


NUMBERS = st.one_of(st.integers(-20, 20), st.floats(0, 1000))
ITERATIONS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=60)


@given(ITERATIONS)
def test_additive_charts_come_to_what_rally_draws(pairs):
    if not importing.load():
        pytest.skip("the extra osbench[rally] is not installed")
    iterations = [[["a", one], ["b", other]] for one, other in pairs]

    for kind in ("StackedArea", "Lines", "Pie"):
        ours, theirs = added_up(kind, iterations)
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        for (_, values), (_, expected) in zip(ours, theirs, strict=True):
            assert np.array(values) == pytest.approx(np.array(expected))
    ours, theirs = added_up("StatsTable", iterations)
    for row, expected in zip(ours["rows"], theirs["rows"], strict=True):
        assert row[0] == expected[0]
        # Rally rounds to three digits
        assert row[1:] == pytest.approx(expected[1:], abs=0.00051)


def test_long_statistics_stay_close_to_rallys():
    if not importing.load():
        pytest.skip("the extra osbench[rally] is not installed")
    values = np.random.default_rng(3).lognormal(0, 1, 12_000)

    ours, theirs = added_up("StatsTable", [[["a", float(one)]] for one in values])
    trend, _ = added_up("Lines", [[["a", float(one)]] for one in values])

    assert ours["rows"][0][1:] == pytest.approx(theirs["rows"][0][1:], rel=0.005, abs=0.001)
    assert len(trend[0][1]) <= 1000
