from dataclasses import replace

import numpy as np
import pytest

from helpers.synthetic_traces import (
    Fault,
    find,
    many_queries,
    slow_query,
    stretch,
    table_of,
    traces,
)
from osbench.edges.traces.analysis.comparison import compare_parts, compare_runs
from osbench.edges.traces.analysis.digest import digest_of


def features(*faults, count=150, seed=1):
    return digest_of(traces(count, *faults, seed=seed)).table.close()


@pytest.mark.parametrize(
    ("harm", "about", "by"),
    [
        (many_queries, "SELECT items", "more_calls_s"),
        (slow_query, "SELECT prices", "slower_calls_s"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_what_was_added_or_saved_is_parted_into_calls_and_their_length(harm, about, by, turned):
    runs = [features(), features(Fault(share=1.0, harm=harm), seed=2)]

    (found,) = compare_runs(*(runs[::-1] if turned else runs))

    first = found.changes[0]
    assert first.about == about
    assert first.real
    assert first.more_calls_s + first.slower_calls_s == pytest.approx(first.added_s)
    assert getattr(first, by) / first.added_s > 0.8
    assert (first.added_s < 0) is turned
    low, high = found.interval_s
    assert low < found.added_s < high
    assert ("less than before" if turned else "more than before") in found.sentence


def test_two_parts_of_a_run_are_compared_by_their_iterations():
    fault = Fault(share=1.0, harm=slow_query)
    digest = digest_of([*traces(100, seed=1), *traces(100, fault, seed=2), *traces(20, seed=3)])
    table = digest.table.close()
    table = replace(table, iteration=np.arange(len(table)) + 1)
    (name,) = table.groups

    found = compare_parts(table, name, np.arange(1, 101), np.arange(101, 201))
    few = compare_parts(table, name, np.arange(1, 101), np.arange(201, 221))

    assert (found.traces_before, found.traces_after) == (100, 100)
    assert found.changes[0].about == "SELECT prices"
    assert found.changes[0].real
    assert found.grown[0].about == "SELECT prices"
    assert few.grown == []
    assert few.sentence == "Too few traces to compare: 100 and 20, 30 are needed of each."


def test_nothing_has_grown_where_the_whole_did_not():
    slower, faster = features(Fault(share=1.0, harm=slow_query), seed=2), features()

    (turned,) = compare_runs(slower, faster)
    (found,) = compare_runs(faster, slower)
    tiny = replace(found.changes[0], added_s=found.added_s * 0.005)

    assert turned.grown == []
    assert [one.about for one in found.grown] == ["SELECT prices"]
    assert replace(found, changes=(tiny,)).grown == []
    assert replace(found, interval_s=(-1e-3, 0.5)).grown == []


def test_a_few_requests_that_waited_for_a_service_to_wake_up_are_no_difference():
    number = iter(range(10_000))

    def wake(work, chance):
        if next(number) < 3:
            stretch(work, find(work, "wsgi").start, 5000)

    fault = Fault(share=0.03, harm=slow_query)
    after = digest_of(traces(800, fault, seed=2, change=wake)).table.close()

    (found,) = compare_runs(features(count=800), after)

    assert found.far == (0, 3)
    assert (found.traces_before, found.traces_after) == (800, 797)
    assert found.changes[0].about == "SELECT prices"


def test_where_most_traces_are_incomplete_the_sentence_says_that_they_are_compared():
    times = np.random.default_rng(4).integers(1000, 2000, (100, 3))
    whole = table_of(times)
    lost = table_of(times, whole=np.arange(100) < 40)

    (found,) = compare_runs(whole, lost)

    assert found.gaps == (0, 60)
    assert (
        "Most of the traces after, 60 of 100, are incomplete and are compared all the same"
        in found.sentence
    )
    assert "incomplete" not in compare_runs(whole, whole)[0].sentence


def test_of_more_traces_than_are_drawn_from_the_parts_sum_to_the_whole():
    chance = np.random.default_rng(3)
    shape = (12_000, 3)

    (found,) = compare_runs(*(table_of(chance.integers(0, most, shape)) for most in (10**6, 10**7)))

    assert sum(one.added_s for one in found.changes) == pytest.approx(found.added_s, rel=1e-9)


def test_too_few_traces_are_not_compared():
    (found,) = compare_runs(features(count=29), features(seed=2))

    assert not found.changes
    assert found.sentence == "Too few traces to compare: 29 and 150, 30 are needed of each."


def test_p_values_are_corrected_for_all_keys_not_only_for_the_greatest_changes():
    """Of 1,900 parts that differ by chance each of the 60 greatest changes is below 0.05 alone."""
    chance = np.random.default_rng(1)

    (found,) = compare_runs(*(table_of(chance.integers(0, 1000, (40, 1900))) for _ in range(2)))

    assert len(found.changes) == 20
    assert not any(change.real for change in found.changes)
