"""The last stretch of time in which more was bad than usual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.results.statistics.off_stretches import fewest_bad, last_off

USUAL = 0.01


def counts_of(*parts):
    """Bad iterations of bins of ten, by (bins, bad of each)."""
    bad = np.concatenate([np.full(bins, each) for bins, each in parts])
    return bad, np.full(len(bad), 10)


def test_an_outage_is_found_to_the_bin():
    found = last_off(*counts_of((20, 10), (60, 0)), USUAL)

    assert (found.begin, found.end) == (0, 20)
    assert found.earliest_end == found.latest_end == 20


def test_the_last_of_two_outages_counts_even_if_it_is_the_shorter_one():
    found = last_off(*counts_of((20, 10), (30, 0), (3, 10), (40, 0)), USUAL)

    assert (found.begin, found.end) == (50, 53)


def test_a_single_failure_long_after_is_no_stretch():
    bad, counts = counts_of((20, 10), (60, 0))
    bad[70] = 1

    assert last_off(bad, counts, USUAL).end == 20


def test_what_is_usual_is_no_stretch():
    random = np.random.default_rng(3)
    counts = np.full(200, 20)
    seen = [last_off(random.binomial(20, USUAL, 200), counts, USUAL) for _ in range(200)]

    assert sum(one is not None for one in seen) <= 5


def test_a_partial_end_is_told_by_an_interval():
    bad, counts = counts_of((20, 5), (40, 0))
    bad[19] = 1

    found = last_off(bad, counts, USUAL)

    assert found.earliest_end <= 19 <= found.latest_end


def test_an_effect_asks_for_more_evidence():
    bad, counts = counts_of((20, 0), (1, 5), (60, 0))

    assert last_off(bad, counts, USUAL) is not None
    assert last_off(bad, counts, USUAL, effect=5.0) is None
    assert fewest_bad(81, USUAL, 5.0) > fewest_bad(81, USUAL)


def test_fewest_bad_make_a_stretch_and_one_less_does_not():
    fewest = fewest_bad(80, USUAL)
    for bad_ones, expected in ((fewest, True), (fewest - 1, False)):
        bad, counts = np.zeros(80, np.int64), np.zeros(80, np.int64)
        counts[:] = 1
        bad[30 : 30 + bad_ones] = 1

        assert (last_off(bad, counts, USUAL) is not None) is expected


def test_nothing_has_no_stretch():
    empty = np.zeros(0, np.int64)

    assert last_off(empty, empty, USUAL) is None
    assert last_off(np.zeros(5, np.int64), np.zeros(5, np.int64), USUAL) is None


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30),
    st.floats(0.001, 0.9),
)
def test_a_stretch_lies_within_and_has_more_than_usual(bins, usual):
    bad = np.array([min(pair) for pair in bins], np.int64)
    counts = np.array([max(pair) for pair in bins], np.int64)

    found = last_off(bad, counts, usual)

    if found is None:
        return
    assert 0 <= found.begin < found.earliest_end <= found.end <= found.latest_end <= len(bins)
    inside = slice(found.begin, found.end)
    assert bad[inside].sum() > usual * counts[inside].sum()


@pytest.mark.parametrize("usual", [0.9, 0.5, 0.001])
def test_few_bins_need_few_bad_ones(usual):
    assert fewest_bad(1, usual) <= fewest_bad(300, usual)
