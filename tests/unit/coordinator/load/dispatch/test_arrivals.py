"""Due instants of an open runner's arrivals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.load.dispatch.arrivals import (
    KEPT_NS,
    Dues,
    nanoseconds,
    slices,
)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_due_instants_are_found_by_number():
    dues = Dues()
    dues.add(1, ints(10, 20, 30))
    dues.add(4, ints(40, 50))

    assert dues.of(ints(5, 1, 3)).tolist() == [50, 10, 30]


def test_what_was_forgotten_or_never_planned_is_long_past():
    dues = Dues()
    dues.add(1, ints(10, 20))
    dues.add(3, ints(KEPT_NS + 100))

    found = dues.of(ints(1, 3, 9))

    assert found[1] == KEPT_NS + 100
    assert found[0] == found[2] < -(10**17)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=20), st.data())
def test_each_number_has_the_instant_of_its_part(parts: list[tuple[int, int]], data: st.DataObject):
    dues, known, first = Dues(), {}, 1
    for gap, count in parts:
        first += gap
        instants = [100 * number + gap for number in range(first, first + count)]
        dues.add(first, ints(*instants))
        known.update(zip(range(first, first + count), instants, strict=True))
        first += count
    asked = data.draw(st.lists(st.integers(0, first + 2), max_size=10))

    found = dues.of(ints(*asked)).tolist()

    assert found == [known.get(number, -(1 << 60)) for number in asked]


def test_instants_are_cut_into_spans():
    found = slices(nanoseconds([0.5, 0.9, 2.5, 2.6, 4.7]))

    assert [part.tolist() for part in found] == [
        [500_000_000, 900_000_000, 2_500_000_000],
        [2_600_000_000],
        [4_700_000_000],
    ]
    assert slices(ints()) == []
