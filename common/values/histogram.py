"""A mergeable histogram of nanoseconds in HdrHistogram's layout, with 3 significant digits.

Layout and percentile rule: http://hdrhistogram.org; lowest discernible value 1 ns. Any two
histograms can be merged, in any order: the result is the histogram of all their samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Index = TypeVar("Index", int, Ints)

#: The largest distinct value, in nanoseconds (10 days); larger ones count as this one.
HIGHEST_NS = 10 * 24 * 3600 * 10**9

#: 3 significant digits need 2,048 sub-buckets; the upper half of them repeats in each bucket.
_HALF = 1024
_HALF_BITS = 10
#: A float64 keeps its exponent over 52 bits of mantissa, of which the index takes ten.
_SHIFT = 52 - _HALF_BITS
#: Exponent (biased by 1,023) of a value whose sub-bucket is the value itself.
_ORIGIN = (1023 + _HALF_BITS - 1) << _HALF_BITS


def indices(values: Ints, lowest: int) -> NDArray[np.intp]:
    """Return the index in the counts for each of `values`, nanoseconds from 0 to HIGHEST_NS.

    `lowest`: the least of `values`.
    """
    index: NDArray[np.intp] = values.astype(np.float64).view(np.int64)
    index >>= _SHIFT
    index -= _ORIGIN
    if lowest < _HALF:
        small = values < _HALF
        index[small] = values[small]
    return index


def highest_equivalent(index: Index) -> Index:
    """Return the largest value, in nanoseconds, that is counted at each `index` of the counts."""
    bucket = (index >> _HALF_BITS) - 1
    # 0 for those below, for an int as for an array
    bucket = bucket * (bucket > 0)
    found: Index = ((index - (bucket << _HALF_BITS) + 1) << bucket) - 1
    return found


def rank(count: int, percent: float) -> int:
    """Return the rank of a percentile (`percent`, 0 to 100) among `count` sorted values, from 1.

    It is the nearest rank: percent of the count, rounded up.
    """
    return max(1, math.ceil(Fraction(str(percent)) * count / 100))


class Histogram:
    """Histogram of durations in integer nanoseconds, with exact count, sum, minimum and maximum."""

    __slots__ = ("_counts", "count", "max", "min", "sum")

    def __init__(self) -> None:
        self._counts: Ints = np.zeros(0, np.int64)
        self.count = 0
        self.sum = 0
        #: Least and largest value in nanoseconds; 0 while there is none.
        self.min = 0
        self.max = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it changes

    @classmethod
    def of(cls, values: Iterable[int]) -> Histogram:
        """Create the histogram of `values`, nanoseconds."""
        histogram = cls()
        histogram.add(np.fromiter(values, np.int64))
        return histogram

    def add(self, values: Ints) -> None:
        """Count durations, nanoseconds; values outside 0 to HIGHEST_NS count as the nearer bound.

        The sum is of the bounded values. Clocks that differ a little make values below 0.
        """
        count = len(values)
        if not count:
            return
        low, high = int(np.minimum.reduce(values)), int(np.maximum.reduce(values))
        if low < 0 or high > HIGHEST_NS:
            values = values.clip(0, HIGHEST_NS)
            low, high = max(low, 0), max(min(high, HIGHEST_NS), 0)
        index = indices(values, low)
        self._reserve(high)
        # as fast as bincount for many values, and does not touch all counts for a few
        np.add.at(self._counts, index, 1)
        # int64 would overflow where a block holds very many very long values
        exact = high * count < 2**63
        total = int(np.add.reduce(values)) if exact else sum(values.tolist())
        self._extend(count, total, low, high)

    def merge(self, other: Histogram) -> None:
        """Add all samples of `other` to this histogram; `other` is not changed."""
        if other.count:
            self._reserve(other.max)
            # `with_highest` may leave zeros above the maximum
            counts = other._counts[: len(self._counts)]
            self._counts[: len(counts)] += counts
            self._extend(other.count, other.sum, other.min, other.max)

    def copy(self) -> Histogram:
        """Return an independent histogram of the same samples."""
        found = Histogram()
        found.merge(self)
        return found

    def since(self, earlier: Histogram) -> Histogram:
        """Return a new histogram of the samples added since `earlier`, an older copy of this one.

        Its minimum and maximum are bounds of buckets, within 0.1 % of the exact values.
        """
        found = Histogram()
        found._counts = self._counts.copy()
        found._counts[: len(earlier._counts)] -= earlier._counts
        at = np.flatnonzero(found._counts)
        if len(at):
            found.count, found.sum = self.count - earlier.count, self.sum - earlier.sum
            ends = (highest_equivalent(int(at[0])), highest_equivalent(int(at[-1])))
            found.min, found.max = (min(end, self.max) for end in ends)
        return found

    def count_above(self, value_ns: int) -> int:
        """Return the number of samples above a value, to the exactness of buckets."""
        return int(self._counts[self._index(value_ns) + 1 :].sum())

    def with_highest(self, values: Ints, numbers: Ints) -> Histogram:
        """Return a new histogram whose highest samples are others: `values`, in nanoseconds.

        `numbers` says how many samples have each value; their sum, at most `count`, is the number
        of samples that are replaced. Sum, minimum and maximum are by upper bounds of buckets, none
        above the old maximum.
        """
        found = Histogram()
        counts = found._counts = self._counts.copy()
        above = np.cumsum(counts[::-1])[::-1] - counts
        counts -= np.clip(numbers.sum() - above, 0, counts)
        if len(values):
            low, high = int(values.min()), int(values.max())
            found._reserve(high)
            np.add.at(found._counts, indices(values, low), numbers)
        at = np.flatnonzero(found._counts)
        if len(at):
            ends = np.minimum(highest_equivalent(at), self.max).tolist()
            weights = found._counts[at].tolist()
            total = sum(end * weight for end, weight in zip(ends, weights, strict=True))
            found._extend(sum(weights), total, ends[0], ends[-1])
        return found

    @staticmethod
    def _index(value_ns: int) -> int:
        value_ns = min(max(0, value_ns), HIGHEST_NS)
        return int(indices(np.array([value_ns], np.int64), value_ns)[0])

    @property
    def mean(self) -> float:
        """Return the exact mean in nanoseconds. Raises ZeroDivisionError without samples."""
        return self.sum / self.count

    def percentile(self, percent: float) -> int:
        """Return the percentile `percent` (0 to 100) in nanoseconds, by nearest rank.

        It is at most 0.1 % above the exact value. Raises ValueError if there are no samples.
        """
        return self.at_ranks((rank(self.count, percent),))[0]

    def at_ranks(self, ranks: Sequence[int]) -> list[int]:
        """Return the `samples` of ranks as a list of integers of Python."""
        found: list[int] = self.samples(np.fromiter(ranks, np.int64)).tolist()
        return found

    def samples(self, ranks: Ints) -> Ints:
        """Return the samples of the given ranks, in their order, nanoseconds; rank 1 is the least.

        A sample is rounded up to the highest value of its bucket, at most the exact maximum. Raises
        ValueError for a rank outside 1 to `count`.
        """
        if len(ranks) and not 1 <= ranks.min() <= ranks.max() <= self.count:
            raise ValueError(f"ranks must be from 1 to {self.count}, got {ranks.tolist()}")
        found = np.searchsorted(np.cumsum(self._counts), ranks)
        return np.minimum(highest_equivalent(found), self.max)

    def to_dict(self) -> dict[str, Any]:
        """Return the histogram as a dict of msgpack types: `index`, `counts`, `sum`, `min`, `max`.

        `index` and `counts` of non-empty buckets are bytes, little-endian uint32 and int64. `sum`
        is a decimal string, `min` and `max` are nanoseconds.
        """
        index = np.flatnonzero(self._counts)
        return {
            "index": index.astype("<u4").tobytes(),
            "counts": self._counts[index].astype("<i8").tobytes(),
            # beyond 64 bits for some, which msgpack has no integer for
            "sum": str(self.sum),
            "min": self.min,
            "max": self.max,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Histogram:
        """Create the histogram from the dict that `to_dict` returned."""
        histogram = cls()
        index = np.frombuffer(form["index"], "<u4")
        counts = np.frombuffer(form["counts"], "<i8")
        if len(index):
            histogram._reserve(form["max"])
            histogram._counts[index] = counts
            histogram._extend(int(counts.sum()), int(form["sum"]), form["min"], form["max"])
        return histogram

    def _reserve(self, value: int) -> None:
        # the position of `value` by the same arithmetic as `indices`, without arrays
        bucket = max(value.bit_length() - _HALF_BITS - 1, 0)
        needed = (bucket << _HALF_BITS) + (value >> bucket) + 1
        if needed > len(self._counts):
            # to the end of the bucket, so that slowly rising maxima do not copy each time
            size = -(-needed // _HALF) * _HALF
            self._counts = np.concatenate(
                (self._counts, np.zeros(size - len(self._counts), np.int64))
            )

    def _extend(self, count: int, total: int, low: int, high: int) -> None:
        self.min = min(self.min, low) if self.count else low
        self.max = max(self.max, high)
        self.count += count
        self.sum += total
