from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rows.scale import POINTS, costs, read_points
from bench.stage import BenchError

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


def test_points_name_workers_and_rate():
    assert read_points("500x10000 1000x100000") == [(500, 10000), (1000, 100000)]


@pytest.mark.parametrize("text", ["500", "500x", "x100", "10x100x2", "10*100"])
def test_a_point_of_another_form_is_refused(text: str):
    with pytest.raises(BenchError, match=r"expected WORKERSxRATE"):
        read_points(text)
