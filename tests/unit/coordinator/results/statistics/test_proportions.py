"""Shares with intervals, and how much failures that come in bursts count."""

import numpy as np
import pytest

from osbench.coordinator.results.statistics.proportions import (
    design_effect,
    share_interval,
    usual_number,
)


def test_the_interval_is_wilsons():
    # Newcombe, Statistics in Medicine 17, 1998, table I
    assert share_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert share_interval(0, 20) == pytest.approx((0, 0.1611), abs=1e-4)
    assert share_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)


def test_nothing_says_nothing_and_bounds_hold_what_was_seen():
    assert share_interval(0, 0) == (0.0, 1.0)
    assert share_interval(5, 5)[1] == 1.0
    assert share_interval(0, 5)[0] == 0.0


def test_the_interval_is_wider_for_what_comes_in_bursts():
    bad, counts = np.zeros(40, np.int64), np.full(40, 10)
    bad[[3, 4, 21]] = 10

    effect = design_effect(bad, counts)
    low, high = share_interval(30, 400, effect)

    assert effect > 5
    assert low < share_interval(30, 400)[0]
    assert high > share_interval(30, 400)[1]


def test_independent_failures_have_about_no_effect_and_short_loads_none():
    random = np.random.default_rng(1)
    counts = np.full(400, 25)
    bad = random.binomial(25, 0.1, 400)

    assert design_effect(bad, counts) < 2.5
    assert design_effect(bad[:8], counts[:8]) == 1.0
    assert design_effect(bad * 0, counts) == 1.0
    assert design_effect(bad[:0], counts[:0]) == 1.0


def test_bins_without_load_at_both_ends_do_not_count():
    random = np.random.default_rng(2)
    counts, bad = np.full(60, 25), random.binomial(25, 0.1, 60)
    empty = np.zeros(40, np.int64)

    padded = design_effect(*(np.concatenate((empty, one, empty)) for one in (bad, counts)))

    assert padded == design_effect(bad, counts)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
def test_later_loads_have_the_usual_number(share):
    random = np.random.default_rng(4)
    inside = 0
    for _ in range(400):
        low, high = usual_number(random.binomial(800, share), 800, 1600)
        inside += low <= random.binomial(1600, share) <= high

    assert inside >= 0.92 * 400
