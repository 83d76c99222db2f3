import math
from fractions import Fraction

import msgpack
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.values.histogram import HIGHEST_NS, Histogram
from osbench.coordinator.results.accounting.examples import Exemplars

values = st.one_of(
    st.integers(0, 5_000),
    st.integers(0, 10**9),
    st.integers(0, HIGHEST_NS),
)


@st.composite
def shuffled_parts(draw, items):
    """A list and the same list in another order, cut into parts."""
    whole = draw(st.lists(items, min_size=1, max_size=200))
    order = draw(st.permutations(whole))
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    return whole, parts


@given(shuffled_parts(values))
def test_merged_parts_are_the_histogram_of_all_samples(case):
    whole, parts = case

    merged = Histogram()
    for part in parts:
        merged.merge(Histogram.of(part))

    assert merged == Histogram.of(whole)


@given(shuffled_parts(values))
def test_blocks_added_in_any_order_are_the_histogram_of_all_samples(case):
    whole, parts = case

    histogram = Histogram()
    for part in parts:
        histogram.add(np.array(part, np.int64))

    assert histogram == Histogram.of(whole)
    assert histogram.sum == sum(whole)


@given(st.lists(values, min_size=1, max_size=300), st.floats(0, 100))
def test_a_percentile_is_at_most_a_thousandth_above_the_exact_one(samples, percent):
    histogram = Histogram.of(samples)

    found = histogram.percentile(percent)

    rank = max(1, math.ceil(len(samples) * Fraction(str(percent)) / 100))
    exact = sorted(samples)[rank - 1]
    assert exact <= found <= exact * 1.001


@given(st.lists(values), st.lists(values, min_size=1))
def test_what_was_added_since_a_copy_is_told_apart(before, after):
    histogram = Histogram.of(before)
    earlier = histogram.copy()
    histogram.add(np.array(after, np.int64))

    added = histogram.since(earlier)

    alone = Histogram.of(after)
    assert (added.count, added.sum) == (alone.count, alone.sum)
    for percent in (0, 50, 95, 100):
        exact = alone.percentile(percent)
        assert exact <= added.percentile(percent) <= exact * 1.001 + 1
    assert histogram.since(histogram.copy()).count == 0


@given(st.lists(values, max_size=200))
def test_a_histogram_survives_storage(samples):
    histogram = Histogram.of(samples)

    copy = Histogram.from_dict(msgpack.unpackb(msgpack.packb(histogram.to_dict())))

    assert copy == histogram
    assert (copy.count, copy.min, copy.max) == (histogram.count, histogram.min, histogram.max)


def trace_of(iteration):
    return iteration.to_bytes(16, "big")


def exemplars_of(*parts):
    exemplars = Exemplars()
    for rows in parts:
        exemplars.add(
            np.array([value for value, _ in rows], np.int64),
            np.array([number for _, number in rows], np.int64),
            np.frombuffer(b"".join(trace_of(n) for _, n in rows), np.uint8).reshape(-1, 16),
        )
    return exemplars


traced_rows = st.tuples(st.one_of(st.integers(0, 30), values), st.integers(0, 10**6))


@given(shuffled_parts(traced_rows))
def test_exemplars_depend_on_the_samples_alone(case):
    whole, parts = case

    assert exemplars_of(*parts).slowest() == exemplars_of(whole).slowest()


@given(st.lists(traced_rows, min_size=1, max_size=200))
def test_the_slowest_traced_iteration_is_an_exemplar(rows):
    exemplars = exemplars_of(rows).slowest()

    value, number = min(rows, key=lambda row: (-row[0], row[1]))
    assert (exemplars[0].value, exemplars[0].iteration) == (value, number)
    assert exemplars[0].trace == trace_of(number)
    assert len(exemplars) <= 10
