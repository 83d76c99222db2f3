"""The histogram of durations: every iteration is in one bin, and the bins fit the durations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.report.html.duration_histogram import histogram
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

times_s = st.floats(1e-7, 3600)


def matrix_of(*taken_s: float) -> LatencyMatrix:
    """Durations of iterations that were all scheduled at once."""
    matrix = LatencyMatrix(1)
    taken = np.array(taken_s) * 1e9
    matrix.add(np.zeros(len(taken), np.int64), taken.astype(np.int64))
    return matrix


@given(st.lists(times_s, max_size=300), st.lists(times_s, max_size=30))
def test_each_iteration_is_in_one_bin(ok_s: list[float], failed_s: list[float]) -> None:
    found = histogram(matrix_of(*ok_s), failed_s)

    assert sum(found.ok) == len(ok_s)
    assert sum(found.failed) == len(failed_s)
    if ok_s or failed_s:
        assert len(found.edges) == len(found.ok) + 1 == len(found.failed) + 1
        assert all(low < high for low, high in itertools.pairwise(found.edges))
        assert found.edges[0] <= 1e3 * min([*ok_s, *failed_s]) * (1 + 1e-5)
        assert found.edges[-1] >= 1e3 * max([*ok_s, *failed_s]) * (1 - 1e-5)


def test_times_of_one_size_have_linear_bins_with_round_bounds() -> None:
    found = histogram(matrix_of(*np.linspace(0.1, 0.2, 1000)), [])

    assert not found.is_log
    assert {round(b - a, 6) for a, b in itertools.pairwise(found.edges)} == {10.0}
    # spread evenly, so that bins are equal; those at the ends have what buckets reach beyond
    assert all(count == pytest.approx(100, abs=3) for count in found.ok[1:-2])


def test_a_long_tail_has_bins_of_equal_ratio() -> None:
    found = histogram(matrix_of(*np.geomspace(0.01, 10, 3000)), [])

    assert found.is_log
    ratios = [b / a for a, b in itertools.pairwise(found.edges)]
    assert ratios == pytest.approx([10 ** (1 / 12)] * len(ratios), rel=1e-4)
    assert all(count == pytest.approx(3000 / 36, abs=5) for count in found.ok[1:-1])


def test_failures_are_counted_apart_and_widen_the_bins_to_their_timeout() -> None:
    found = histogram(matrix_of(0.1, 0.11, 0.12), [30.0, 30.0])

    assert found.is_log
    assert sum(found.ok) == 3
    assert found.failed[-1] == 2
    assert found.ok[-1] == 0


def test_equal_times_have_one_narrow_stretch_of_bins_and_none_have_no_bins() -> None:
    equal = histogram(matrix_of(*[0.05] * 500), [])

    assert max(equal.ok) >= 250
    assert equal.edges[-1] - equal.edges[0] < 5
    assert histogram(matrix_of(), []).edges == []
