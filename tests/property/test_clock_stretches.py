"""Whatever calls say of a clock, its corrections are finite and in order of time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from osbench.edges.traces.model.clock_stretches import Bounds, fit

MS = 1_000_000


@settings(max_examples=examples(150))
@given(
    st.integers(1, 400),
    st.integers(0, 2**32),
    st.sampled_from((0, 1, 1000)),
    st.sampled_from((0.0, 0.3, 1.0)),
    st.booleans(),
)
def test_corrections_are_finite_and_in_order(count, seed, apart_ms, unbounded, answered):
    chance = np.random.default_rng(seed)
    moved = np.cumsum(chance.choice((0, 0, 0, 30, -30), count)) * MS
    low = moved - chance.integers(0, 50, count) * 1.0 * MS
    high = moved + chance.integers(0, 50, count) * 1.0 * MS
    turned = chance.random(count) < 0.5
    no_end = chance.random(count) < unbounded
    bounds = Bounds(
        at=np.sort(chance.integers(0, 10 * apart_ms + 1, count)) * MS,
        low=np.where(turned & no_end, -np.inf, low),
        high=np.where(~turned & no_end, np.inf, high),
        turned=turned,
        kind=turned.astype(np.int64),
        answered=np.full(count, answered),
    )

    found = fit(bounds, 0.0)

    begins = [one.from_ns for one in found.stretches]
    assert begins == sorted(begins)
    assert all(one.from_ns <= one.to_ns for one in found.stretches)
    assert all(abs(one.last_add_ns) < 2**62 for one in found.stretches)
    assert found.error_ns >= 0
