"""Calls of spans by iteration, whatever path the iteration waited for."""

import json

import pytest

from helpers.synthetic_traces import Work, spans_of
from osbench.common.plugin.atomic import PAUSE
from osbench.common.plugin.sla import SpanSelection
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.analysis.features import NO_GROUP
from osbench.edges.traces.analysis.span_calls import CallMean, call_means, changed_means
from osbench.edges.traces.model.span_keys import SpanKey, fits

SELECT = SpanKey("shop/api", "db", "SELECT items")
QUERIES = SpanSelection(service="shop", name="db*")


def request(queries, number, lost=False):
    """Queries side by side: one of them is on the critical path."""
    api = Work(name="wsgi", start=1, length=30, service="shop/api", host="b")
    for at in range(queries):
        api.add(
            Work(
                name="db",
                start=2,
                length=10 + at,
                service="shop/api",
                host="b",
                detail="SELECT items",
                lost_stop=lost and at == 0,
            )
        )
    root = Work(name="osbench.iteration", start=0, length=40)
    return spans_of(root.add(api, Work(name=PAUSE, start=32, length=5)), number=number)


def counted(*found, selections=(QUERIES,)):
    """Digest traces, each with its group and outcome."""
    survey = Survey()
    for trace, *_ in found:
        survey.add(trace)
    digest = Digest(survey, ["a"], {0: selections})
    for number, (trace, group, outcome) in enumerate(found, 1):
        digest.add_iteration(trace, group=group, iteration=number, outcome=outcome, kept=False)
    return digest.calls


def test_all_calls_count_and_not_only_those_that_were_waited_for():
    calls = counted(*((request(queries, queries), 0, Outcome.OK) for queries in (0, 3, 40)))

    (found,) = calls.figures()[0]

    assert found.traces == 3
    assert found.calls == {0: 1, 3: 1, 40: 1}
    assert (found.most, found.fewest) == (3, 1)
    assert found.durations.count == 43
    assert found.durations.max == 49_000_000


def test_traces_that_would_count_wrongly_are_left_out():
    calls = counted(
        (request(2, 0), 0, Outcome.OK),
        (request(9, 1), 0, Outcome.FAILED),
        (request(9, 2), NO_GROUP, Outcome.OK),
        (request(9, 3, lost=True), 0, Outcome.OK),
    )

    (found,) = calls.figures()[0]

    assert (found.calls, found.incomplete) == ({2: 1}, 1)


def test_a_selection_that_matches_nothing_has_no_calls():
    none = SpanSelection(service="stock", name="db*")
    client = SpanSelection(service="osbench/worker", name="*")
    calls = counted((request(2, 0), 0, Outcome.OK), selections=(none, client))

    first, second = calls.figures()[0]

    assert (first.calls, first.durations.count) == ({0: 1}, 0)
    # pauses of the scenario are none
    assert second.calls == {1: 1}


def test_means_outlive_the_run_directory():
    calls = counted(*((request(queries, queries), 0, Outcome.OK) for queries in (1, 3)))

    means = call_means(json.loads(json.dumps(calls.to_dict(["a"]))), "a")

    assert means[SELECT] == CallMean(traces=2, sum=4, squares=10)
    assert means[SELECT].mean == 2
    assert call_means({}, "a") == {}


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (CallMean(traces=100, sum=4000, squares=160_000), True),
        (CallMean(traces=100, sum=100, squares=100), False),
        # noise: 1.1 on average, from 0 to 10
        (CallMean(traces=100, sum=110, squares=800), False),
        (CallMean(traces=100, sum=0, squares=0), True),
    ],
)
def test_counts_that_changed_beyond_chance(after, changed):
    before = CallMean(traces=100, sum=100, squares=100)
    other = {SpanKey("s", "n", ""): before}

    found = changed_means({SELECT: before, **other}, {SELECT: after, **other})

    assert found == ([(SELECT, 1.0, after.mean)] if changed else [])


def test_a_call_that_is_new_and_one_that_is_gone():
    one = CallMean(traces=50, sum=50, squares=50)
    gone, new = SpanKey("s", "gone", ""), SpanKey("s", "new", "")

    assert changed_means({gone: one}, {new: one}) == [(gone, 1.0, 0.0), (new, 0.0, 1.0)]
    assert changed_means({}, {new: one}) == []


def test_a_kind_beyond_the_kept_ones_is_not_taken_for_one_without_calls():
    frequent = CallMean(traces=50, sum=100, squares=200)
    rare = CallMean(traces=50, sum=50, squares=50)
    kept = {SpanKey("s", f"n{number}", ""): frequent for number in range(200)}
    few = dict(list(kept.items())[:199])
    beyond = SpanKey("s", "beyond", "")

    assert changed_means(kept, {**few, beyond: rare}) == []
    assert changed_means({**few, beyond: rare}, kept) == []
    assert changed_means(few, {**few, beyond: rare}) == [(beyond, 0.0, 1.0)]


@pytest.mark.parametrize(
    ("pattern", "text", "same"),
    [
        ("db", "db", True),
        ("db", "db SELECT", False),
        ("db*", "db SELECT", True),
        ("*SELECT", "db SELECT", True),
        ("d*S*T", "db SELECT", True),
        ("d*ST", "db SELECT", False),
        ("*", "", True),
        ("**a**", "bab", True),
        ("a*a", "a", False),
        ("d.*", "db", False),
        ("a*b*b", "ab", False),
        ("*" * 5000 + "x", "y" * 5000, False),
    ],
)
def test_stars_stand_for_any_text(pattern, text, same):
    assert fits(pattern, text) is same
