"""Durations over time: how many fell into each bucket of latency in each bin of time.

Bins of time begin 0.25 s wide; their width doubles if times do not fit into the number of bins.
Buckets divide every factor of two into 64 equal parts, so that a bucket is at most 1.6 % wide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Bins of time at most, unless stated otherwise.
BINS = 600
#: Width of a bin at first, nanoseconds.
FINEST_NS = 250_000_000

_PART_BITS = 6
_PARTS = 1 << _PART_BITS
#: A float64 keeps its exponent over 52 bits of mantissa.
_SHIFT = 52 - _PART_BITS
#: Exponent (biased by 1,023) of 1 ns, the least value that is distinguished.
_ORIGIN = 1023 << _PART_BITS
#: Columns are added in multiples of this, so that few values far apart do not copy all of them.
_MARGIN = _PARTS
#: More than any matrix of osbench has: data of a file must not fill the memory.
_MOST_BINS, _MOST_COLUMNS = 4096, 64 * _PARTS + _MARGIN

#: Of the type of the counts: numpy adds others far more slowly.
_ONE = np.uint32(1)


def buckets_of(values_ns: Ints) -> Ints:
    """Return the bucket number of each duration in nanoseconds; 0 for durations below 1 ns, too."""
    buckets: Ints = np.maximum(values_ns, 1).astype(np.float64).view(np.int64)
    buckets >>= _SHIFT
    buckets -= _ORIGIN
    return buckets


@dataclass(frozen=True, slots=True)
class Extent:
    """A non-empty array with its minimum and maximum, computed once for several uses."""

    values: Ints
    least: int
    greatest: int

    @classmethod
    def of(cls, values: Ints) -> Extent:
        """Return `values` with minimum and maximum. Raises ValueError if `values` is empty."""
        return cls(values, int(np.minimum.reduce(values)), int(np.maximum.reduce(values)))


def bounds_of(buckets: Ints) -> tuple[Floats, Floats]:
    """Return the lower (inclusive) and upper (exclusive) bounds of buckets, in nanoseconds."""
    octave = np.exp2(buckets >> _PART_BITS)
    part = buckets & (_PARTS - 1)
    return octave * (1 + part / _PARTS), octave * (1 + (part + 1) / _PARTS)


def latencies_at(counts: Ints, lowest: int, ranks: Floats) -> Floats:
    """Return for each rank the duration (ns) that as many durations do not exceed.

    Ranks go from 0 to the number of durations; others are clipped. `counts` is by bucket, from
    bucket `lowest` on. Linear within a bucket. NaN if all counts are 0.
    """
    sums = np.cumsum(counts)
    if not len(sums) or not sums[-1]:
        return np.full(len(ranks), math.nan)
    # the least is the lower bound of the first bucket that holds one
    ends = np.searchsorted(sums, 0, side="right"), np.searchsorted(sums, sums[-1])
    columns = np.clip(np.searchsorted(sums, ranks), *ends)
    low, high = bounds_of(lowest + columns)
    inside = (ranks - (sums[columns] - counts[columns])) / counts[columns]
    found: Floats = low + (high - low) * np.clip(inside, 0.0, 1.0)
    return found


def resolved_at(counts: Ints, lowest: int, rank: float, apart: float) -> tuple[float, float]:
    """Return the least and greatest duration, in nanoseconds, at a rank.

    `counts` is by bucket, from bucket `lowest` on; `apart` is the distance to the percentile's
    rank. Both are the same, interpolated value unless the rank's bucket has more than 2 * `apart`
    durations: then they are the bucket's bounds, as the order of durations within it is not known.
    """
    sums = np.cumsum(counts)
    column = min(int(np.searchsorted(sums, rank)), len(sums) - 1)
    if counts[column] > 2 * apart:
        low, high = bounds_of(np.array([lowest + column]))
        return float(low[0]), float(high[0])
    value = float(latencies_at(counts, lowest, np.array([rank]))[0])
    return value, value


def percentiles_of(counts: Ints, lowest: int, percents: Sequence[float]) -> list[float]:
    """Return percentiles (0 to 100) in nanoseconds, in the order of `percents`.

    `counts` is by bucket, from bucket `lowest` on. Linear within a bucket. NaN if all counts are 0.
    """
    ranks = int(counts.sum()) * np.array(percents, np.float64) / 100
    return [float(value) for value in latencies_at(counts, lowest, ranks)]


def percentile_of(counts: Ints, lowest: int, percent: float) -> float:
    """Return a percentile (0 to 100) in nanoseconds; NaN if all counts are 0.

    `counts` is by bucket, from bucket `lowest` on.
    """
    return percentiles_of(counts, lowest, (percent,))[0]


class LatencyMatrix:
    """Counts of durations by bin of time and bucket of latency, in bounded memory.

    Memory grows with the range of durations, not with their number.
    """

    __slots__ = ("_bins", "_counts", "_width_ns", "lowest", "used")

    def __init__(self, bins: int = BINS) -> None:
        self._bins = bins
        self._width_ns = FINEST_NS
        self._counts: NDArray[np.uint32] = np.zeros((bins, 0), np.uint32)
        #: Number of the bucket of the first column.
        self.lowest = 0
        #: Bins of time up to the last that was counted in.
        self.used = 0

    @property
    def width_s(self) -> float:
        """Present width of a bin of time, in seconds; it doubles when bins do not suffice."""
        return self._width_ns / 1e9

    @property
    def total(self) -> int:
        """Number of durations that were counted."""
        return int(self._counts[: self.used].sum(dtype=np.int64))

    def counts(self) -> Ints:
        """Return a copy of the counts: a row per bin of time, a column per bucket from `lowest`."""
        return self._counts[: self.used].astype(np.int64)

    def summed(self) -> Ints:
        """Return the number of durations in each bucket, from bucket `lowest` on, over all time."""
        sums: Ints = self._counts[: self.used].sum(axis=0, dtype=np.int64)
        return sums

    def by_time(self) -> Ints:
        """Return the number of durations in each bin of time, for the first `used` bins."""
        sums: Ints = self._counts[: self.used].sum(axis=1, dtype=np.int64)
        return sums

    def percentile(self, percent: float) -> float:
        """Return a percentile (0 to 100) over all time, in ns; NaN if nothing was counted."""
        return percentile_of(self.summed(), self.lowest, percent)

    def add(self, instants_ns: Ints, values_ns: Ints) -> None:
        """Count durations (ns) at times in ns after t0; both arrays pair up by index.

        Times before t0 count as t0. If a time is beyond the last bin, all bins become wider.
        """
        if len(values_ns):
            self.add_buckets(Extent.of(instants_ns), Extent.of(buckets_of(values_ns)))

    def add_buckets(self, instants: Extent, buckets: Extent) -> None:
        """Count durations by bucket number at times in ns after t0; both arrays pair up by index.

        Times before t0 count as t0. If a time is beyond the last bin, all bins become wider.
        """
        # clocks disagree a little: a time can seem to lie before t0
        first, latest = max(instants.least, 0), max(instants.greatest, 0)
        while latest // self._width_ns >= self._bins:
            self._widen()
        last = latest // self._width_ns
        self.used = max(self.used, last + 1)
        self._reach(buckets.least, buckets.greatest)
        columns = self._counts.shape[1]
        if first // self._width_ns == last:
            # so it is with most blocks of results, and a division takes its time
            at = buckets.values + (last * columns - self.lowest)
        else:
            at = np.maximum(instants.values, 0) // self._width_ns
            at *= columns
            at += buckets.values
            at -= self.lowest
        np.add.at(self._counts.reshape(-1), at, _ONE)

    def rebinned(self, bins: int) -> LatencyMatrix:
        """Return a new matrix with the same durations, in at most `bins` bins of time.

        Pairs of bins are joined as often as needed, so widths double.
        """
        found = LatencyMatrix(bins)
        found._width_ns, found.lowest = self._width_ns, self.lowest
        counts, used = self._counts[: self.used], self.used
        while used > bins:
            counts = _pair_sums(counts)
            used = (used + 1) // 2
            found._width_ns *= 2
        found._counts = np.zeros((bins, counts.shape[1]), np.uint32)
        found._counts[:used] = counts[:used]
        found.used = used
        return found

    def between(self, begin_s: float, end_s: float) -> LatencyMatrix:
        """Return a new matrix with the durations between two times, seconds after t0, 0 or more.

        Times are rounded to bounds of bins; `begin_s` becomes time 0. Times after the last used bin
        count as its end. Empty if no bin is left.
        """
        found = LatencyMatrix(self._bins)
        found._width_ns, found.lowest = self._width_ns, self.lowest
        reached_s = self.used * self.width_s
        begin, end = (round(min(at_s, reached_s) / self.width_s) for at_s in (begin_s, end_s))
        found.used = max(0, end - begin)
        found._counts = np.zeros_like(self._counts)
        found._counts[: found.used] = self._counts[begin:end]
        return found

    def with_bins(self, bins: NDArray[np.bool_]) -> LatencyMatrix:
        """Return a new matrix of the chosen bins of time, joined; `bins`: a bool per used bin."""
        found = LatencyMatrix(self._bins)
        found._width_ns, found.lowest = self._width_ns, self.lowest
        found.used = int(np.count_nonzero(bins))
        found._counts = np.zeros_like(self._counts)
        found._counts[: found.used] = self._counts[: self.used][bins]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as values for msgpack; counts of 0 are left out."""
        flat = self._counts[: self.used].reshape(-1)
        at = np.flatnonzero(flat)
        return {
            "bins": self._bins,
            "width_ns": self._width_ns,
            "lowest": self.lowest,
            "shape": [self.used, self._counts.shape[1]],
            "at": np.diff(at, prepend=0).astype("<u4").tobytes(),
            "counts": flat[at].astype("<u4").tobytes(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LatencyMatrix:
        """Return the matrix that `to_dict` returned as `document`.

        Raises KeyError, TypeError, ValueError or IndexError if the document has another shape, or
        is larger than any matrix of osbench.
        """
        bins, (used, columns) = document["bins"], document["shape"]
        width_ns, lowest = document["width_ns"], document["lowest"]
        if not all(isinstance(one, int) for one in (bins, used, columns, width_ns, lowest)):
            raise TypeError("a matrix of another shape")
        if width_ns < 1 or not (0 <= used <= bins <= _MOST_BINS and 0 <= columns <= _MOST_COLUMNS):
            raise ValueError("a matrix of another shape")
        found = cls(bins)
        found._width_ns, found.lowest = width_ns, lowest
        found.used = used
        found._counts = np.zeros((found._bins, columns), np.uint32)
        at = np.cumsum(np.frombuffer(document["at"], "<u4").astype(np.int64))
        found._counts.reshape(-1)[at] = np.frombuffer(document["counts"], "<u4")
        return found

    def _reach(self, low: int, high: int) -> None:
        columns = self._counts.shape[1]
        if columns and self.lowest <= low and high < self.lowest + columns:
            return
        if columns:
            low, high = min(low, self.lowest), max(high, self.lowest + columns - 1)
        begin = low // _MARGIN * _MARGIN
        end = (high // _MARGIN + 1) * _MARGIN
        grown = np.zeros((self._bins, end - begin), np.uint32)
        if columns:
            grown[:, self.lowest - begin : self.lowest - begin + columns] = self._counts
        self._counts, self.lowest = grown, begin

    def _widen(self) -> None:
        merged = _pair_sums(self._counts)
        self._counts[: len(merged)] = merged
        self._counts[len(merged) :] = 0
        self._width_ns *= 2
        self.used = (self.used + 1) // 2


def _pair_sums(counts: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the sums of rows 0 and 1, 2 and 3, ...; a last row without partner stays as it is."""
    even, odd = counts[0::2], counts[1::2]
    merged = even.copy()
    merged[: len(odd)] += odd
    return merged
