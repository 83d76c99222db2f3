import math

import numpy as np
import pytest

from helpers.queue_runs import Queue
from osbench.coordinator.results.statistics.block_intervals import (
    Doubt,
    DoubtCause,
    block_intervals,
    rank_bounds,
)
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

PERCENTS = (50.0, 95.0, 99.0)


def matrix_of(instants_s, values_s):
    matrix = LatencyMatrix()
    matrix.add(
        (np.asarray(instants_s) * 1e9).astype(np.int64), (np.asarray(values_s) * 1e9).astype(int)
    )
    return matrix


def test_what_depends_on_its_past_has_wider_intervals_than_what_does_not():
    random = np.random.default_rng(2)
    instants, latencies = Queue(load=0.8, duration_s=600).run(random)
    matrix, mixed = LatencyMatrix(), LatencyMatrix()
    matrix.add(instants, latencies)
    mixed.add(instants, random.permutation(latencies))

    queued, shuffled = (block_intervals(one, (50.0,)) for one in (matrix, mixed))

    (wide,), (narrow,) = queued.estimates, shuffled.estimates
    assert wide.value_ns == narrow.value_ns
    assert wide.design_effect > 5
    assert narrow.design_effect < 2
    assert np.diff(wide.interval_ns) > 2 * np.diff(narrow.interval_ns)


def test_any_length_from_five_seconds_on_has_intervals():
    random = np.random.default_rng(2)
    lengths = [*map(float, range(5, 186)), 5.1, 7.77, 49.9, 74.99, 150.3, 183.7]

    for duration_s in lengths:
        count = int(100 * duration_s)
        at = np.linspace(0, duration_s, count, endpoint=False)
        found = block_intervals(matrix_of(at, random.exponential(0.1, count)), (50.0,))

        low, high = found.estimates[0].interval_ns
        assert 0 < low < found.estimates[0].value_ns < high < math.inf, duration_s
        assert found.blocks * found.block_s == pytest.approx(duration_s, abs=1)


def test_a_run_of_less_than_four_seconds_has_no_interval():
    found = block_intervals(matrix_of(np.arange(0, 3.5, 0.001), np.full(3500, 0.1)), PERCENTS)

    assert (found.blocks, found.block_s) == (0, 0)
    assert {one.interval_ns for one in found.estimates} == {None}
    assert found.doubt.cause is DoubtCause.SHORT
    assert found.doubt.missing == PERCENTS


def test_latency_that_keeps_its_level_for_long_stretches_has_a_wide_interval():
    # 15 seconds fast, 15 seconds slow
    random = np.random.default_rng(5)
    instants = np.arange(0, 120, 0.01)
    slow = instants // 15 % 2 == 1

    found = block_intervals(
        matrix_of(instants, np.where(slow, 0.02, 0.01) * random.exponential(1, len(slow))), PERCENTS
    )

    low, high = found.estimates[0].interval_ns
    assert low < 0.008e9
    assert high > 0.013e9
    assert found.estimates[1].interval_ns[1] == math.inf
    assert found.doubt.cause is DoubtCause.STRETCHES
    assert found.doubt.bounded_by_s > 120


def test_a_percentile_that_few_moments_lie_beyond_has_no_upper_bound():
    # two pauses of a second: all p99 is made of
    random = np.random.default_rng(6)
    instants = np.arange(0, 120, 0.01)
    into = np.minimum((instants - 31.3) % 1e9, (instants - 84.1) % 1e9)

    values = random.exponential(0.01, len(instants)) + np.maximum(1 - into, 0)
    median, high = block_intervals(matrix_of(instants, values), (50.0, 99.0)).estimates

    assert median.interval_ns[1] < 1.2 * median.value_ns
    low, upper = high.interval_ns
    assert low < 0.1e9
    assert upper == math.inf
    assert high.interval_ranks[1] == math.inf


def test_the_length_that_would_bound_a_percentile_bounds_it():
    random = np.random.default_rng(7)

    def run(duration_s):
        count = int(100 * duration_s)
        at = np.sort(random.uniform(0, duration_s, count))
        return block_intervals(matrix_of(at, random.exponential(0.01, count)), (99.0,))

    found = run(5)
    again = run(1.5 * found.doubt.bounded_by_s)

    assert found.estimates[0].interval_ns[1] == math.inf
    assert found.doubt.cause is DoubtCause.FEW
    assert 6 < found.doubt.bounded_by_s < 30
    assert again.doubt is None


@pytest.mark.parametrize(("grows", "cause"), [(0.5, DoubtCause.ROSE), (-0.4, DoubtCause.FELL)])
def test_latency_that_drifts_through_the_load_is_named(grows, cause):
    random = np.random.default_rng(8)
    instants = np.arange(0, 120, 0.01)
    values = 0.01 * (1 + grows * instants / 120) * random.exponential(1, len(instants))

    assert block_intervals(matrix_of(instants, values), (50.0,)).doubt.cause is cause


def test_a_percentile_of_few_iterations_has_no_lower_bound_and_so_no_interval():
    found = block_intervals(matrix_of(np.arange(0, 6, 1.5), np.full(4, 0.1)), (50.0,))

    assert found.estimates[0].interval_ns is None
    assert found.doubt.missing == (50.0,)


def test_bounds_of_ranks_never_leave_the_run_below_and_do_not_pretend_above():
    assert rank_bounds(1000, 0.5, 30) == (pytest.approx(470, abs=0.1), 530)
    assert rank_bounds(1000, 0.99, 12)[1] == math.inf
    assert rank_bounds(1000, 0.5, 600) == (pytest.approx(83.2, abs=0.1), math.inf)
    assert rank_bounds(10, 0.5, 40) is None


def test_a_bound_in_a_bucket_that_holds_most_iterations_is_the_end_of_the_bucket():
    # 0.1 s with a spread of 0.1 %, less than a bucket: where in it they lie is not known
    random = np.random.default_rng(9)
    values = 0.1 * random.normal(1, 0.001, 12_000)

    found = block_intervals(matrix_of(np.arange(0, 120, 0.01), values), (50.0, 95.0, 99.0))

    for one, true in zip(found.estimates, (0.1, 0.1001645, 0.1002326), strict=True):
        low, high = one.interval_ns
        assert low <= true * 1e9 <= high
        assert high < 1.04 * low


def test_latency_that_is_always_the_same_has_an_interval_as_wide_as_a_bucket():
    found = block_intervals(matrix_of(np.arange(0, 100, 0.05), np.full(2000, 0.1)), (50.0,))

    (median,) = found.estimates
    low, high = median.interval_ns
    assert 0.098e9 < low <= 0.1e9 <= high < 0.102e9


def test_time_without_load_at_either_end_is_no_block():
    random = np.random.default_rng(3)
    values = random.exponential(0.1, 6000)
    early = block_intervals(matrix_of(np.arange(0, 60, 0.01), values))
    late = block_intervals(matrix_of(np.arange(30, 90, 0.01), values))

    assert early == late


def test_nothing_counted_has_no_percentiles():
    assert block_intervals(LatencyMatrix()) is None


@pytest.mark.parametrize(
    ("doubt", "note"),
    [
        (
            Doubt(cause=DoubtCause.SHORT),
            "no intervals: iterations were scheduled over less than 5 s",
        ),
        (
            Doubt(cause=DoubtCause.FEW, unbounded=(99.0,), bounded_by_s=180),
            "no upper bound of p99: too few separate moments were that slow; run for about 3 min"
            " to bound p99",
        ),
        (
            Doubt(cause=DoubtCause.STRETCHES, unbounded=(50.0, 95.0, 99.0)),
            "no upper bound of p50, p95 and p99: latency kept its level for long stretches",
        ),
        (
            Doubt(cause=DoubtCause.ROSE, missing=(50.0,), unbounded=(95.0,)),
            "no interval of p50 and no upper bound of p95: latency rose through the load",
        ),
        (
            Doubt(cause=DoubtCause.FELL),
            "latency fell through the load: percentiles depend on when it began and ended",
        ),
    ],
)
def test_what_a_run_does_not_say_is_one_sentence(doubt, note):
    assert doubt.note == note
