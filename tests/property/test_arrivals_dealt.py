"""Due times of arrivals are cut into slices, and found by number."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.load.dispatch.arrivals import (
    SLICE_NS,
    Dues,
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
