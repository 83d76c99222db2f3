"""Durations over time: counts, widening bins, percentiles, the form on disk."""

from __future__ import annotations

import math

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.coordinator.results.statistics.latency_matrix import (
    LatencyMatrix,
    bounds_of,
    buckets_of,
    latencies_at,
    percentile_of,
    percentiles_of,
)

SECOND = 10**9


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@given(st.integers(min_value=1, max_value=10**15))
def test_a_value_lies_in_its_bucket(value: int) -> None:
    low, high = bounds_of(buckets_of(ints(value)))
    assert low[0] <= value < high[0]
    assert high[0] / low[0] <= 1 + 1 / 64 + 1e-12


def test_values_below_a_nanosecond_are_in_the_first_bucket() -> None:
    assert buckets_of(ints(-5, 0, 1)).tolist() == [0, 0, 0]


def test_counts_by_time_and_bucket() -> None:
    matrix = LatencyMatrix(bins=8)
    matrix.add(ints(-5, 0, 260_000_000), ints(1000, 1000, 10**7))
    assert matrix.by_time().tolist() == [2, 1]
    assert matrix.total == 3
    columns = matrix.counts()
    assert columns[0, buckets_of(ints(1000))[0] - matrix.lowest] == 2
    assert columns[1, buckets_of(ints(10**7))[0] - matrix.lowest] == 1


def test_the_width_doubles_when_the_bins_do_not_reach() -> None:
    matrix = LatencyMatrix(bins=5)
    for second in range(10):
        matrix.add(ints(second * SECOND), ints(SECOND))
    assert matrix.width_s == 2.0
    assert matrix.by_time().tolist() == [2, 2, 2, 2, 2]


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**12)), min_size=1, max_size=60),
    st.integers(1, 7),
)
def test_the_order_of_adding_and_the_form_on_disk_change_nothing(
    samples: list[tuple[int, int]], part: int
) -> None:
    whole, parts = LatencyMatrix(bins=16), LatencyMatrix(bins=16)
    whole.add(*np.array(samples, np.int64).T)
    for begin in range(0, len(samples), part):
        parts.add(*np.array(samples[::-1][begin : begin + part], np.int64).T)
    again = LatencyMatrix.from_dict(msgpack.unpackb(msgpack.packb(whole.to_dict())))
    for other in (parts, again):
        assert other.width_s == whole.width_s
        assert other.lowest == whole.lowest
        assert np.array_equal(other.counts(), whole.counts())


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.integers(1, 20))
def test_fewer_bins_hold_the_same_durations(instants: list[int], bins: int) -> None:
    matrix = LatencyMatrix(bins=32)
    matrix.add(np.array(instants, np.int64), np.array(instants, np.int64) + 1)
    fewer = matrix.rebinned(bins)
    assert fewer.used <= bins
    assert np.array_equal(fewer.summed(), matrix.summed())
    assert fewer.width_s >= matrix.width_s
    # the last bin holds the last instant
    assert (fewer.used - 1) * fewer.width_s <= max(instants) / 1e9 < fewer.used * fewer.width_s


def test_percentiles_lie_within_a_bucket_of_the_exact_ones() -> None:
    values = np.random.default_rng(1).lognormal(17, 1, 20_000).astype(np.int64)
    matrix = LatencyMatrix()
    matrix.add(np.zeros(len(values), np.int64), values)
    for percent in (1, 50, 95, 99.9):
        assert matrix.percentile(percent) == pytest.approx(
            np.percentile(values, percent), rel=0.016
        )


def test_nothing_has_no_percentile() -> None:
    assert math.isnan(LatencyMatrix().percentile(50))
    assert math.isnan(percentile_of(ints(0, 0), 0, 50))


def test_the_least_is_in_the_first_bucket_that_holds_one() -> None:
    low, high = bounds_of(ints(102))
    assert low[0] <= percentile_of(ints(0, 0, 4, 1), 100, 0) < high[0]


def test_ranks_are_linear_within_buckets_and_skip_empty_ones() -> None:
    low, high = bounds_of(ints(101, 103))
    middle = (low + high) / 2

    found = latencies_at(ints(0, 2, 0, 2, 0), 100, np.array([0.0, 1.0, 2.0, 3.0, 4.0]))

    assert found.tolist() == [low[0], middle[0], high[0], middle[1], high[1]]


def test_many_percentiles_are_those_that_come_one_by_one() -> None:
    counts = np.random.default_rng(1).integers(0, 3, 500)
    percents = [0.0, 1e-6, 37.5, 50.0, 99.0, 99.99, 100.0]

    found = percentiles_of(counts, 7, percents)

    assert found == [percentile_of(counts, 7, percent) for percent in percents]
    assert found == sorted(found)
