from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rows.scale import POINTS, costs

cost = st.floats(min_value=1e-7, max_value=1e-2)


@given(cost, cost, cost)
def test_the_costs_that_made_the_points_are_found(fixed: float, worker: float, iteration: float):
    made = [(w, rate, fixed + w * worker + rate * iteration) for w, rate in POINTS]

    found = costs(made)

    for workers, rate, cpu in made:
        again = found[0] + found[1] * workers + found[2] * rate
        assert again == pytest.approx(cpu, rel=1e-6)
    assert found == pytest.approx((fixed, worker, iteration), rel=1e-3, abs=1e-9)
