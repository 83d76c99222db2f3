import numpy as np
import pytest

from osbench.edges.traces.analysis.bootstrap import corrected_p, difference


def test_of_no_difference_no_share_is_known():
    same = np.full((40, 2), 0.005)

    found = difference(same, same)

    assert found.share_low.tolist() == [0.0, 0.0]
    assert found.share_high.tolist() == [1.0, 1.0]
    assert (found.p > 0.9).all()


def test_intervals_hold_what_was_put_in():
    chance = np.random.default_rng(3)
    base = chance.normal(10, 1, (400, 2))
    slow = chance.normal(10, 1, (60, 2))
    slow[:, 0] += 3

    found = difference(slow, base)

    assert found.low[0] < 3 < found.high[0]
    assert found.low[1] < 0 < found.high[1]
    assert found.total_low < 3 < found.total_high
    assert found.share_low[0] < 1 < found.share_high[0]
    assert found.p[0] < 0.01
    assert found.p[1] > 0.05


def test_a_smaller_p_value_is_never_corrected_to_a_greater_one():
    assert corrected_p(np.array([0.01, 0.011, 0.9])) == pytest.approx([0.0165, 0.0165, 0.9])


def test_many_columns_of_chance_are_not_taken_for_causes():
    """Of 60 columns that do not differ three are "significant" before they are corrected."""
    chance = np.random.default_rng(4)
    alarms = [
        (difference(chance.normal(size=(50, 60)), chance.normal(size=(200, 60)), n).p < 0.05).sum()
        for n in range(4)
    ]

    assert sum(alarms) <= 1


def test_columns_left_out_count_as_tests_that_found_nothing():
    assert corrected_p(np.array([0.001, 0.02]), 100) == pytest.approx([0.1, 1.0])


def test_columns_chosen_for_their_differences_are_not_taken_for_causes():
    """Of 1,000 columns of chance the 20 greatest differences are all "significant" each time."""
    chance, alarms = np.random.default_rng(8), 0
    for seed in range(2):
        slow, base = chance.normal(size=(50, 1000)), chance.normal(size=(200, 1000))
        most = np.argsort(base.mean(axis=0) - slow.mean(axis=0))[:20]
        found = difference(slow[:, most], base[:, most], seed, tests=1000)
        alarms += int((found.p < 0.05).sum())

    assert alarms <= 1


def test_one_true_cause_among_many_columns_is_found():
    chance = np.random.default_rng(9)
    slow, base = chance.normal(size=(50, 3)), chance.normal(size=(200, 3))
    slow[:, 0] += 2

    assert difference(slow, base, tests=1000).p[0] < 0.05


@pytest.mark.parametrize("less", [False, True])
def test_two_sided_sees_less_as_well(less):
    chance = np.random.default_rng(5)
    base, slow = chance.normal(10, 1, (60, 1)), chance.normal(12, 1, (60, 1))
    if less:
        base, slow = slow, base

    assert difference(slow, base, two_sided=True).p[0] < 0.01
    assert bool(difference(slow, base).p[0] < 0.01) is not less


def test_of_many_rows_those_of_one_accident_still_stand_together():
    """Two stalls that delay thousands of requests are no evidence of what is usual."""
    chance = np.random.default_rng(6)
    base = chance.normal(10, 1, (400, 2))
    slow = chance.normal(10, 1, (4000, 2))
    slow[:, 0] += 30

    stalls = difference(slow, base, clusters=np.repeat([7, 9], 2000))
    always = difference(slow, base, clusters=np.arange(4000))

    assert (stalls.share_low[0], stalls.share_high[0]) == (0.0, 1.0)
    assert always.share_low[0] > 0.9


def test_one_accident_is_one_of_as_many_as_there_are_requests_without_it():
    chance = np.random.default_rng(7)
    base = chance.normal(10, 1, (30, 1))
    slow = chance.normal(12, 1, (40, 1))

    once = difference(slow, base, clusters=np.zeros(40, np.int64))

    # any of 31 may be the one that is apart
    assert once.p[0] > 0.02
    assert difference(slow, base).p[0] < 0.01
