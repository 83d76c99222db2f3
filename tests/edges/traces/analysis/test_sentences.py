import pytest

from helpers.synthetic_traces import Fault, find, many_queries, stretch, traces
from osbench.coordinator.formatting import spaced
from osbench.edges.traces.analysis.bands import Band
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.sentences import why_slow
from osbench.edges.traces.analysis.slow_causes import Cause


def told(**numbers):
    """What is told of a cause of which more calls are the most."""
    given = {"calls_slow": 1.0, "calls_base": 0.0, "occurs_slow": 1.0, "occurs_base": 0.0}
    cause = Cause(
        who="shop/api",
        what="db",
        about="SELECT 1",
        excess_s=0.276,
        interval_s=(0.2, 0.3),
        share=0.8,
        share_interval=(0.75, 0.85),
        slow_s=0.276,
        base_s=0.0,
        more_calls_s=0.276,
        slower_calls_s=0.0,
        seen_in=1.0,
        p=0.0,
        clear=True,
        hosts=(("b", 1.0),),
        **(given | numbers),
    )
    band = Band(
        name="p99+",
        traces=50,
        base_traces=500,
        from_s=0.2,
        to_s=0.4,
        mean_s=0.3,
        base_s=0.079,
        excess_s=0.221,
        interval_s=(0.2, 0.3),
        enough=True,
        causes=(cause,),
    )
    return why_slow(band, "trace")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (
            {"calls_slow": 0.757, "occurs_slow": 0.757},
            "in 76 % of the slow ones, in none of the normal ones",
        ),
        ({}, "in all of the slow ones, in none of the normal ones"),
        (
            {"calls_base": 0.0004, "occurs_base": 0.0004},
            "in all of the slow ones, in 0.04 % of the normal ones",
        ),
        (
            {"calls_slow": 4.995, "occurs_slow": 0.9991, "calls_base": 0.04, "occurs_base": 0.04},
            "in 99.9 % of the slow ones (5 calls each), in 4 % of the normal ones",
        ),
        (
            {"calls_slow": 3.2, "calls_base": 1.1, "occurs_base": 1.0},
            "3.2 calls instead of 1.1",
        ),
    ],
)
def test_calls_are_compared_where_all_traces_have_some_and_else_it_is_told_which(numbers, words):
    assert told(**numbers) == (
        "The slowest 1 % of traces (p99+) take 300 ms on average, 221 ms more than those around"
        f" the median: 80 % (95 %: 75 to 85 %) of that is shop/api db SELECT 1 on host b, {words}."
    )


def test_a_call_that_some_slow_traces_have_and_no_normal_one_is_told_so():
    def recompute(root, chance):
        api = find(root, "wsgi")
        at = api.inner[0].end + 0.001
        stretch(root, at, 40.0)
        api.add(type(api)(name="recompute", start=at, length=39.9, service="shop/api", host="b"))

    found = explain(digest_of(traces(1000, Fault(share=0.05, harm=recompute))).table.close())

    assert "is shop/api recompute on host b, in " in found.sentence
    assert " of the slow ones, in none of the normal ones." in found.sentence
    cause = found.answers[0].bands[0].clear
    assert cause.occurs_base == 0
    assert cause.occurs_slow == pytest.approx(cause.calls_slow)


def test_more_calls_of_what_all_have_are_told_as_numbers():
    found = explain(digest_of(traces(1000, Fault(share=0.05, harm=many_queries))).table.close())

    assert "calls instead of 1." in found.sentence


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2214, "221 ms"),
        (0, "0"),
        (None, "-"),
        (3.2e-7, "320 ns"),
        (7200, "2.00 h"),
        (61, "61.0 s"),
    ],
)
def test_units_of_sentences_have_a_space_before_them(seconds, text):
    assert spaced(seconds) == text
