import numpy as np
import pytest

from osbench.common.values.histogram import Histogram
from osbench.coordinator.results.statistics.percentiles import interval_ranks, percentiles


def test_ranks_for_a_thousand_samples():
    assert interval_ranks(1000, 99) == (983, 998)
    assert interval_ranks(1000, 50) == (469, 532)


@pytest.mark.parametrize(("count", "percent"), [(100, 99), (5, 50), (100, 1), (1, 50), (5000, 100)])
def test_too_few_samples_support_no_interval(count, percent):
    assert interval_ranks(count, percent) is None


def test_intervals_enclose_their_percentile():
    histogram = Histogram.of(range(1, 1001))

    found = {p.percent: p for p in percentiles(histogram)}

    assert found[50.0].value == 500
    assert found[50.0].interval == (469, 532)
    assert found[99.0].value == 990
    assert found[99.0].interval == (983, 998)
    assert found[99.9].interval is None


def test_an_empty_histogram_has_none():
    assert percentiles(Histogram()) == ()


def test_intervals_hold_the_true_percentile_in_about_95_of_100_samples():
    random = np.random.default_rng(5)
    truth = {50.0: np.log(2) * 1e9, 90.0: np.log(10) * 1e9, 99.0: np.log(100) * 1e9}
    held = dict.fromkeys(truth, 0)

    for _ in range(400):
        histogram = Histogram()
        histogram.add(random.exponential(1e9, 1000).astype(np.int64))
        for found in percentiles(histogram, list(truth)):
            low, high = found.interval
            held[found.percent] += low <= truth[found.percent] <= high

    assert all(0.92 <= count / 400 <= 0.985 for count in held.values()), held
