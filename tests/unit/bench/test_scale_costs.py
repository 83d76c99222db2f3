from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rows.scale import POINTS, costs

cost = st.floats(min_value=1e-6, max_value=1e-2)


@given(cost, cost, cost, cost)
def test_the_costs_that_made_the_points_are_found(
    fixed: float, worker: float, block: float, iteration: float
):
    made = []
    for workers, rate in POINTS:
        blocks = min(5.0 * workers, 250.0)
        cpu = fixed + workers * worker + blocks * block + rate * iteration
        made.append(((float(workers), blocks, float(rate)), cpu))

    found = costs(made)

    for counts, cpu in made:
        again = found[0] + sum(one * each for one, each in zip(counts, found[1:], strict=True))
        assert again == pytest.approx(cpu, rel=1e-6)
    assert found == pytest.approx([fixed, worker, block, iteration], rel=1e-3, abs=1e-7)
