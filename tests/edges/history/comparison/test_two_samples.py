import math

import numpy as np
import pytest

from osbench.edges.history.comparison.two_samples import (
    Shifted,
    holm,
    paired_shift,
    pooled_shift,
    welch,
)

# Student's data on sleep (Biometrika 6, 1908), and what R's t.test says of them
A = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
B = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_welch_is_that_of_another_program():
    found = welch(A, B)

    assert found.freedom == pytest.approx(17.776, abs=0.001)
    assert found.p == pytest.approx(0.07939, abs=0.00001)
    assert found.interval == pytest.approx((-0.2054832, 3.3654832), abs=1e-6)


def test_pairs_are_those_of_another_program():
    found = paired_shift(A, B)

    assert found.freedom == 9
    assert found.p == pytest.approx(0.002833, abs=0.000001)
    assert found.interval == pytest.approx((0.7001142, 2.4598858), abs=1e-6)


def test_the_interval_and_the_p_value_agree():
    random = np.random.default_rng(1)
    for _ in range(50):
        found = welch(random.normal(0, 1, 5), random.normal(0.8, 2, 4))
        low, high = found.interval

        assert (found.p < 0.05) == (low > 0 or high < 0)


def test_one_run_a_side_is_compared_with_the_spread_of_others():
    spread = [0.0, 0.02, -0.02, 0.01, -0.01]

    small, large = (pooled_shift([0.0], [by], [spread]) for by in (0.03, 0.2))

    assert small.freedom == 4
    assert small.p > 0.05 > large.p


def test_without_any_group_of_two_nothing_is_known():
    assert pooled_shift([1.0], [2.0]) is None
    assert pooled_shift([1.0], [2.0], [[1.0]]) is None


def test_equal_numbers_without_spread_are_equal_and_others_are_not():
    assert welch([1.0, 1.0], [1.0, 1.0]).p == 1
    assert welch([1.0, 1.0], [2.0, 2.0]).p == 0


def test_equivalence_needs_an_interval_within_the_margin():
    precise, vague = (Shifted(by=0.005, error=error, freedom=8) for error in (0.002, 0.05))

    assert precise.equivalence_p(math.log(1.03)) < 0.001
    assert vague.equivalence_p(math.log(1.03)) > 0.2
    assert Shifted(by=0.2, error=0.002, freedom=8).equivalence_p(0.03) > 0.99


def test_a_difference_that_is_findable_is_found_in_80_of_100_cases():
    random = np.random.default_rng(5)
    known = Shifted(by=0.0, error=math.sqrt(2 / 8), freedom=14)

    shift = known.findable(0.05)

    found = [welch(random.normal(0, 1, 8), random.normal(shift, 1, 8)).p < 0.05 for _ in range(500)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


def test_holm_multiplies_the_least_p_value_by_their_number_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
