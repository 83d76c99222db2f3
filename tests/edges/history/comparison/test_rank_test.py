import numpy as np
import pytest

from osbench.edges.history.comparison.rank_test import family_p, shift_interval


def test_the_p_value_of_one_row_is_that_of_mann_and_whitney():
    # divisions of ten runs into five and five: 252
    assert family_p([[1, 2, 3, 4, 5]], [[6, 7, 8, 9, 10]]) == [pytest.approx(2 / 252)]
    assert family_p([[1, 2, 3, 4, 6]], [[5, 7, 8, 9, 10]]) == [pytest.approx(4 / 252)]
    assert family_p([[5, 1, 3, 9, 7]], [[6, 2, 4, 10, 8]])[0] > 0.5


def test_a_run_that_is_far_off_counts_as_the_slowest():
    near, far = (family_p([[1, 2, 3, 4, 5]], [[6, 7, 8, 9, last]]) for last in (10, 1000))

    assert near == far


def test_rows_that_are_alike_cost_nothing_and_others_do():
    first, second = [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]
    random = np.random.default_rng(1)
    others = random.normal(size=(6, 10)).tolist()

    alike = family_p([first] * 4, [second] * 4)
    among = family_p([first, *(row[:5] for row in others)], [second, *(row[5:] for row in others)])

    assert alike == [pytest.approx(2 / 252)] * 4
    assert 2 / 252 < among[0] < 0.1


def test_groups_without_a_difference_have_small_p_values_as_seldom_as_they_say():
    random = np.random.default_rng(2)

    found = [
        min(family_p(values[:, :6].tolist(), values[:, 6:].tolist()))
        for values in random.normal(size=(300, 4, 12))
    ]

    assert 0.01 <= np.mean(np.array(found) < 0.05) <= 0.08


def test_of_very_many_divisions_a_sample_is_taken_that_is_always_the_same():
    random = np.random.default_rng(3)
    first, second = random.normal(0, 1, (1, 12)), random.normal(1.2, 1, (1, 12))

    found, again = (family_p(first.tolist(), second.tolist()) for _ in range(2))

    assert found == again
    assert 0.0001 < found[0] < 0.05


def test_equal_values_share_their_ranks():
    assert family_p([[1, 1, 1, 1, 1]], [[1, 1, 1, 1, 1]]) == [1]


def test_the_interval_is_the_one_that_belongs_to_the_test():
    # the third least and the third greatest of 25 differences (Hollander and Wolfe, table A.6)
    first, second = [0.0, 1.0, 2.0, 3.0, 4.0], [10.0, 10.1, 10.2, 10.3, 10.4]
    differences = sorted(b - a for a in first for b in second)

    assert shift_interval(first, second) == pytest.approx((differences[2], differences[-3]))


def test_the_interval_holds_the_shift_in_95_of_100_cases():
    random = np.random.default_rng(4)

    held = [
        low <= 0.5 <= high
        for first, second in zip(
            random.normal(0, 1, (400, 7)), random.normal(0.5, 1, (400, 7)), strict=True
        )
        for low, high in [shift_interval(first.tolist(), second.tolist())]
    ]

    assert 0.93 <= np.mean(held) <= 0.99
