"""Charts added up over iterations: what is shown, and what bounds them."""

import itertools
import statistics

import hypothesis.strategies as st
import msgpack
import numpy as np
import pytest
from hypothesis import given

from helpers.result_rows import row_of
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting import charts
from osbench.coordinator.results.accounting.charts import POINTS, Charts, Sketch, Trend


def item(chart, data, title="a title", **more):
    return {"title": title, "chart_plugin": chart, "data": data, **more}


def block(*iterations, first=1):
    """Result rows with outputs: lists of (kind, item) by iteration."""
    rows = [
        row_of(
            number,
            Outcome.OK,
            *(0, 1, 2, 0, 0, ()),
            (b"", [msgpack.packb({"kind": kind, "item": chart}) for kind, chart in outputs], b""),
        )
        for number, outputs in enumerate(iterations, first)
    ]
    return decode_rows(encode_rows(rows, (), 0))


def charts_of(*blocks):
    charts = Charts()
    for one in blocks:
        charts.add(one)
    return charts.to_dict()


def additive(chart, *values, title="a title"):
    return block(*([("additive", item(chart, pairs, title))] for pairs in values))


def test_each_kind_of_additive_chart_adds_up_as_it_is_drawn():
    values = [[["foo", 1], ["bar", 10]], [["foo", 3], ["bar", 20.5]], [["foo", 8], ["bar", 0]]]

    found = {
        chart: charts_of(additive(chart, *values))["additive"][0]
        for chart in ("StackedArea", "Lines", "Pie", "StatsTable")
    }

    foo, bar = [[1, 1], [2, 3], [3, 8]], [[1, 10], [2, 20.5], [3, 0]]
    assert found["StackedArea"]["data"] == found["Lines"]["data"] == [["foo", foo], ["bar", bar]]
    assert found["Pie"]["data"] == [["foo", 4], ["bar", pytest.approx(30.5 / 3)]]
    assert found["StatsTable"]["data"]["cols"][0:2] == ["Action", "Min"]
    assert found["StatsTable"]["data"]["rows"][0] == pytest.approx(["foo", 1, 3, 7, 7.5, 8, 4, 3])
    assert {chart["iterations"] for chart in found.values()} == {3}


def test_charts_are_told_apart_by_title_kind_and_place():
    two = [("additive", item("Pie", [["a", 1]])), ("additive", item("Pie", [["a", 3]]))]
    lines = ("additive", item("Lines", [["a", 5]]))

    found = charts_of(block([*two, lines], two), additive("Pie", [["a", 7]], title="another"))

    assert [(chart["title"], chart["data"]) for chart in found["additive"]] == [
        ("a title", [["a", 1]]),
        ("a title", [["a", 3]]),
        ("a title", [["a", [[1, 5]]]]),
        ("another", [["a", 7]]),
    ]


def test_complete_charts_are_counted_and_say_where_to_find_one():
    text = ("complete", item("TextArea", ["b"], description="what it is"))
    page = ("complete", item("EmbeddedChart", "<p>", title="page"))

    found = charts_of(block([text], [text, page], first=7), block([text], first=2))

    (texts, pages) = found["complete"]
    assert (texts["iterations"], texts["first_iteration"]) == (3, 2)
    assert texts["description"] == "what it is"
    assert (pages["chart_plugin"], pages["iterations"]) == ("EmbeddedChart", 1)
    assert found["additive"] == []


def test_a_chart_plug_in_that_only_rally_knows_is_added_up_as_lines():
    found = charts_of(additive("Waterfall", [["a", 1]], [["a", 3]]))

    (chart,) = found["additive"]
    assert (chart["chart_plugin"], chart["data"]) == ("Waterfall", [["a", [[1, 1], [2, 3]]]])
    assert found["cut"]["not_additive"] == 0


def test_what_cannot_be_added_up_is_counted_and_spoils_nothing():
    values = [
        [["a", 1]],
        [["a", "one"]],
        [["a", float("nan")]],
        [["a", -1e308]],
        [["a"]],
        [3],
        "text",
        None,
    ]

    found = charts_of(additive("Lines", *values), additive("Table", [["a", 1]]))

    assert found["additive"][0]["data"] == [["a", [[1, 1]]]]
    assert found["cut"] == {"charts": 0, "values": 0, "malformed": 7, "not_additive": 1}


def test_titles_and_names_made_up_from_data_do_not_fill_the_memory():
    many = [additive("Pie", [["a", 1]], title=f"title {n}") for n in range(charts.CHARTS + 5)]
    names = [additive("Lines", [[f"name {n}", 1]]) for n in range(charts.NAMES + 7)]

    titles, named = charts_of(*many), charts_of(*names)

    assert len(titles["additive"]) == charts.CHARTS
    assert titles["cut"]["charts"] == 5
    assert len(named["additive"][0]["data"]) == charts.NAMES
    assert named["cut"]["values"] == 7


def test_passwords_of_trace_stores_are_in_no_chart():
    data = {"trace_id": "abc", "conn_str": "redis://:hunter2@host:6379"}
    found = charts_of(
        block([("complete", item("OSProfiler", data, description="from http://a:hunter2@b/"))])
    )

    assert "hunter2" not in str(found)


@given(st.lists(st.tuples(st.integers(1, 10**7), st.floats(-1e6, 1e6)), min_size=1, max_size=50))
def test_a_trend_does_not_depend_on_the_order_of_iterations(values):
    forward, backward = Trend(), Trend()

    for one in values:
        forward.add(*one)
    for one in reversed(values):
        backward.add(*one)

    assert [x for x, _ in forward.shown()] == [x for x, _ in backward.shown()]
    assert [y for _, y in forward.shown()] == pytest.approx([y for _, y in backward.shown()])


def test_a_long_trend_is_condensed_to_means_of_equal_runs():
    found = Trend()

    for number in range(1, 10_001):
        found.add(number, number)

    points = found.shown()
    assert len(points) == 625 <= POINTS
    assert points[0] == [16, 8.5]
    assert points[-1] == [10_000, statistics.mean(range(9985, 10_001))]


NUMBERS = st.one_of(
    st.integers(-50, 50), st.floats(-1e12, 1e12, allow_subnormal=False), st.floats(0.001, 100)
)


def exact(values, percent):
    return float(np.percentile(np.array(values, float), percent))


@given(st.lists(NUMBERS, min_size=1, max_size=200))
def test_a_sketch_of_few_values_is_exact(values):
    found = Sketch()

    for value in values:
        found.add(value)

    for percent in (0, 50, 90, 95, 100):
        expected = exact(values, percent)
        assert found.percentile(percent) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_a_sketch_of_many_values_is_close_and_small():
    draw = np.random.default_rng(5)
    values = [*draw.lognormal(0, 1.5, 30_000), *-draw.uniform(0.5, 2, 3_000)]
    found = Sketch()

    for value in values:
        found.add(float(value))

    assert len(found._buckets) <= charts.BUCKETS
    for percent in (1, 5, 50, 90, 95, 99):
        assert found.percentile(percent) == pytest.approx(exact(values, percent), rel=0.01)
    assert [found.low, found.high] == [min(values), max(values)]
    assert found.total / found.count == pytest.approx(statistics.mean(values))


def test_nothing_grows_with_the_number_of_iterations():
    chart = [[["a", 0.1 + n % 97 / 7], ["b", n]] for n in range(500)]
    charts = Charts()
    for first in itertools.islice(itertools.count(1, 500), 12):
        for kind in ("StatsTable", "StackedArea", "Pie"):
            pairs = [[("additive", item(kind, pairs))] for pairs in chart]
            charts.add(block(*pairs, first=first))

    found = charts.to_dict()["additive"]

    assert all(chart["iterations"] == 6000 for chart in found)
    assert all(len(points) <= POINTS for _, points in found[1]["data"])
    assert found[0]["data"]["rows"][1][-1] == 6000


def test_a_sketch_of_negative_numbers_mirrors_that_of_positive_ones():
    above, below = Sketch(), Sketch()
    for value in np.random.default_rng(1).lognormal(0, 3, 2_100).tolist():
        above.add(value)
        below.add(-value)

    for percent in (10, 50, 90, 99):
        assert below.percentile(100 - percent) == pytest.approx(-above.percentile(percent))
