"""Arrivals are dealt so that nothing is lost and nothing comes twice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.dispatch.arrivals import (
    SLICE_NS,
    Dues,
    deal,
    deal_numbers,
    nanoseconds,
    slices,
)

instants = st.lists(st.floats(0, 20), max_size=60).map(lambda found: nanoseconds(sorted(found)))


@given(instants)
def test_slices_are_the_instants_in_order_and_no_fewer_would_do(dues: np.ndarray) -> None:
    parts = slices(dues)

    assert [due for part in parts for due in part.tolist()] == dues.tolist()
    assert all(part[-1] - part[0] <= SLICE_NS for part in parts)
    assert all(later[0] - part[0] > SLICE_NS for part, later in pairwise(parts))


@given(instants, st.integers(1, 8), st.integers(0, 10**6))
def test_hands_hold_all_instants_evenly_and_in_order(
    dues: np.ndarray, hands: int, turn: int
) -> None:
    dealt = deal(dues, hands, turn)

    assert len(dealt) == hands
    assert sorted(np.concatenate(dealt).tolist()) == dues.tolist()
    assert all(hand.tolist() == sorted(hand.tolist()) for hand in dealt)
    sizes = [len(hand) for hand in dealt]
    assert max(sizes) - min(sizes) <= 1
    if len(dues):
        assert dealt[turn % hands][0] == dues[0]


@given(st.sets(st.integers(1, 80)), st.integers(1, 8))
def test_moved_numbers_are_dealt_whole_and_evenly(numbers: set[int], hands: int) -> None:
    moving = Intervals.of(np.array(sorted(numbers), np.int64))

    dealt = deal_numbers(moving, hands)

    found = [number for hand in dealt for number in hand.members().tolist()]
    assert found == sorted(numbers)
    sizes = [len(hand) for hand in dealt]
    assert max(sizes) - min(sizes) <= 1
    assert len(moving) == len(numbers)


@given(st.lists(instants.filter(len), min_size=1, max_size=5), st.data())
def test_the_instant_of_every_number_is_found(parts: list[np.ndarray], data: st.DataObject) -> None:
    dues, first = Dues(), 1
    for part in parts:
        dues.add(first, part)
        first += len(part)
    planned = np.concatenate(parts)
    asked = data.draw(st.lists(st.integers(1, len(planned)), max_size=20))

    found = dues.of(np.array(asked, np.int64))

    assert found.tolist() == [int(planned[number - 1]) for number in asked]


@given(st.floats(0, 1e6))
def test_seconds_become_the_nearest_nanosecond(seconds: float) -> None:
    (found,) = nanoseconds([seconds]).tolist()

    assert abs(found - seconds * 1e9) <= max(0.5, seconds * 1e9 * 2e-16)
