"""Counts over sliding windows of time."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.results.statistics.windows import MOST_STEPS, STEPS, Window, Windows

SECOND = 1_000_000_000


def windows_of(events, over_s=10.0, from_s=0.0):
    """Windows of (instant in seconds, bad) pairs."""
    found = Windows(over_s, from_s)
    instants = np.array([round(at * SECOND) for at, _ in events], np.int64)
    found.add(instants, np.array([bad for _, bad in events], np.bool_))
    return found


def test_the_window_with_the_greatest_share_is_the_worst():
    found = windows_of([(1, False), (5, False), (12, True), (13, False), (25, False)])

    assert found.worst() == Window(from_s=6.0, to_s=16.0, count=2, bad=1)
    assert found.worst().span == "from 6 s to 16 s"
    assert found.worst().percent == 50


def test_a_time_shorter_than_a_window_is_one_unless_windows_have_to_be_complete():
    found = windows_of([(1, True), (5, False)])

    assert found.worst() == Window(from_s=0.0, to_s=10.0, count=2, bad=1)
    assert found.worst(complete=True) is None
    assert windows_of([]).worst() is None


def test_a_window_is_complete_when_something_was_counted_after_it():
    assert windows_of([(1, True), (9.9, True)]).worst(complete=True) is None
    assert windows_of([(1, True), (10, True)]).worst(complete=True).count == 1


def test_what_was_before_the_first_window_does_not_count():
    found = windows_of([(1, True), (29.9, True), (31, False), (45, False)], from_s=30)

    assert found.worst() == Window(from_s=30.0, to_s=40.0, count=1, bad=0)


def test_shares_are_compared_exactly():
    found = windows_of([(1, number == 0) for number in range(1000)])

    assert found.exceeding(100 - Fraction("99.9")) == (0, 1)
    assert found.exceeding(Fraction("0.0999")) == (1, 1)


def test_the_least_window_lies_between_two_instants():
    events = [(at, False) for at in range(20) for _ in range(5 if at < 12 else 1)]
    found = windows_of(events, over_s=5.0)

    assert found.least(0, 20 * SECOND) == Window(from_s=12.0, to_s=17.0, count=5, bad=0)
    assert found.least(0, 10 * SECOND).count == 25
    assert found.least(3 * SECOND, 7 * SECOND) is None


def test_instants_beyond_all_time_take_no_memory():
    found = windows_of([(1, False)])

    found.add(np.array([2**62], np.int64), np.array([True]))

    assert len(found._counts) <= 2 * MOST_STEPS
    assert found.worst().bad == 1


@given(
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=60),
    st.integers(0, 10),
)
def test_windows_are_what_counting_by_hand_gives(events, from_s):
    found = windows_of(events, over_s=5.0, from_s=from_s)
    inside = [(at - from_s, bad) for at, bad in events if at >= from_s]
    last = max((at for at, _ in inside), default=-1)
    by_hand = []
    for begin in range(max(1, last + 2 - STEPS) if inside else 0):
        window = [bad for at, bad in inside if begin <= at < begin + STEPS]
        by_hand.append((len(window), sum(window)))

    above = sum(10 * bad > 3 * count for count, bad in by_hand)

    assert found.exceeding(Fraction(30)) == (above, sum(count > 0 for count, _ in by_hand))
    worst = found.worst()
    shares = [Fraction(bad, count) for count, bad in by_hand if count]
    assert (worst is None) == (not shares)
    if worst is not None:
        assert Fraction(worst.bad, max(1, worst.count)) == max(shares)
