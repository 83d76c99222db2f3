import msgpack
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from osbench.common.values.histogram import HIGHEST_NS, Histogram, highest_equivalent, indices

EDGES = [0, 1, 2, 1022, 1023, 1024, 1025, 2046, 2047, 2048, 2049, 2050, 4095, 4096, HIGHEST_NS]


def samples(count=50_000):
    random = np.random.default_rng(7)
    spread = random.lognormal(15, 4, count).astype(np.int64)
    small = random.integers(0, 5_000, count // 10)
    values = np.concatenate([spread, small, np.array(EDGES)])
    return np.minimum(values, HIGHEST_NS)


def reference(values):
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value in values.tolist():
        assert histogram.record_value(value)
    return histogram


def test_counts_are_those_of_hdrhistogram():
    values = samples()
    known = reference(values)

    histogram = Histogram()
    histogram.add(values)

    index = np.flatnonzero(np.array(list(known.counts)))
    form = histogram.to_dict()
    assert np.frombuffer(form["index"], "<u4").tolist() == index.tolist()
    assert np.frombuffer(form["counts"], "<i8").tolist() == [known.counts[at] for at in index]


def test_percentiles_are_those_of_hdrhistogram_where_the_rank_is_whole():
    values = samples(10_000)[:10_000]
    known = reference(values)

    histogram = Histogram()
    histogram.add(values)

    for percent in (1, 25, 50, 75, 90, 95, 99, 99.9):
        assert histogram.percentile(percent) == known.get_value_at_percentile(percent)


def test_the_highest_percentile_is_the_exact_maximum():
    histogram = Histogram.of([1, 5_000_001])

    assert histogram.percentile(100) == 5_000_001
    assert histogram.percentile(99.9) == 5_000_001


def test_percentiles_take_the_nearest_rank():
    histogram = Histogram.of(range(1, 11))

    assert [histogram.percentile(p) for p in (0, 10, 10.1, 50, 90, 90.1)] == [1, 1, 2, 5, 9, 10]


@pytest.mark.parametrize("kind", [int, np.int64, lambda index: np.array([index])])
@pytest.mark.parametrize("value", [0, 1, 1023, 2047, 2048, 3000, 4095, 4096, 8191, HIGHEST_NS])
def test_the_highest_value_of_a_bucket_has_eleven_bits_of_its_own(kind, value):
    index = int(indices(np.array([value], np.int64), value)[0])

    unit = 1 << max(0, value.bit_length() - 11)
    assert highest_equivalent(kind(index)) == value | (unit - 1)


def test_count_sum_and_bounds_are_exact():
    values = samples(1_000)

    histogram = Histogram()
    for part in np.array_split(values, 7):
        histogram.add(part)

    assert histogram.count == len(values)
    assert histogram.sum == sum(values.tolist())
    assert (histogram.min, histogram.max) == (0, HIGHEST_NS)


def test_the_sum_does_not_overflow():
    histogram = Histogram()

    histogram.add(np.full(20_000, HIGHEST_NS))

    assert histogram.sum == 20_000 * HIGHEST_NS
    assert histogram.mean == HIGHEST_NS
    assert Histogram.from_dict(msgpack.unpackb(msgpack.packb(histogram.to_dict()))) == histogram


def test_values_out_of_range_count_as_the_nearest_one():
    histogram = Histogram.of([-5, 2 * HIGHEST_NS])
    below = Histogram.of([-5, -1])

    assert (histogram.min, histogram.max) == (0, HIGHEST_NS)
    assert histogram.percentile(50) == 0
    assert (below.count, below.min, below.max, below.sum) == (2, 0, 0, 0)


def test_an_empty_histogram_has_no_percentile():
    histogram = Histogram()
    histogram.add(np.empty(0, np.int64))

    with pytest.raises(ValueError, match="ranks"):
        histogram.percentile(50)

    assert histogram.count == 0
    assert Histogram.from_dict(histogram.to_dict()) == histogram
