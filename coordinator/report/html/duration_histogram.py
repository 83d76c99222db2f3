"""Makes a histogram of the durations of iterations; successes and failures are separate counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix, bounds_of

Floats = NDArray[np.float64]

#: Bins at least and at most; between them twice the cube root of the count (Rice's rule).
_FEWEST, _MOST = 8, 40
#: Durations that differ by this factor or more have bins of equal ratio.
_LOG_FROM = 10.0
#: A bin is at least as wide as the buckets of a matrix, of which 64 make a factor of two.
_FINEST = 1 / 64
#: Bins of equal ratio: for a factor of ten, and at most. Long tails take many, mostly empty ones.
_PER_DECADE = (24, 16, 12, 8, 6, 4, 3, 2, 1)
_MOST_LOG = 72
_USUAL_PER_DECADE = 12
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class DurationHistogram:
    """Counts of iterations by duration, for a chart; empty lists if there are no durations."""

    is_log: bool
    #: Bounds of the bins, milliseconds: one more than there are counts.
    edges: list[float]
    ok: list[int]
    #: Of the failed iterations that are kept one by one.
    failed: list[int]


def histogram(matrix: LatencyMatrix, failed_s: Sequence[float]) -> DurationHistogram:
    """Return the histogram of successes (a matrix of durations) and of failures (seconds).

    Failures of 0 s or less are left out. Bins have equal widths or, if durations differ by a factor
    of ten or more, equal ratios.
    """
    counts = matrix.summed()
    failed = np.array([1e3 * value for value in failed_s if value > 0], np.float64)
    at = np.flatnonzero(counts)
    first, last = (int(at[0]), int(at[-1])) if len(at) else (0, -1)
    counts = counts[first : last + 1]
    low, high = (one / 1e6 for one in bounds_of(np.arange(first, last + 1) + matrix.lowest))
    ends = [*low[:1].tolist(), *high[-1:].tolist(), *failed.tolist()]
    if not ends:
        return DurationHistogram(is_log=False, edges=[], ok=[], failed=[])
    total = int(counts.sum()) + len(failed)
    is_log = max(ends) >= _LOG_FROM * min(ends)
    edges = (_log_edges if is_log else _linear_edges)(min(ends), max(ends), total)
    return DurationHistogram(
        is_log=is_log,
        edges=[float(f"{edge:.6g}") for edge in edges],
        ok=_between(edges, np.append(low, high[-1:]), counts),
        # edges on a grid may miss the outermost values by a rounding error
        failed=np.histogram(np.clip(failed, edges[0], edges[-1]), edges)[0].tolist(),
    )


def _bin_count(total: int) -> int:
    return min(_MOST, max(_FEWEST, math.ceil(2 * math.cbrt(total))))


def _linear_edges(low: float, high: float, total: int) -> Floats:
    least = max((high - low) / _bin_count(total), high * _FINEST)
    power: float = 10.0 ** math.floor(math.log10(least))
    step = next(power * one for one in _ROUND if power * one >= least * (1 - 1e-9))
    begin, end = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return step * np.arange(begin, max(end, begin + 1) + 1, dtype=np.float64)


def _log_edges(low: float, high: float, total: int) -> Floats:
    decades = math.log10(high / low)
    wanted = min(_MOST_LOG, max(_bin_count(total), math.ceil(_USUAL_PER_DECADE * decades)))
    each = next((one for one in _PER_DECADE if one * decades <= wanted), 1)
    begin = math.floor(each * math.log10(low) + 1e-9)
    end = math.ceil(each * math.log10(high) - 1e-9)
    return 10.0 ** (np.arange(begin, max(end, begin + 1) + 1, dtype=np.float64) / each)


def _between(edges: Floats, bounds: Floats, counts: NDArray[np.int64]) -> list[int]:
    """Return the counts between `edges` from counts of buckets, which lie between `bounds`.

    Durations are taken as evenly spread in a bucket. Sums are rounded instead of counts, so that no
    iteration is lost or counted twice.
    """
    if not len(counts):
        return [0] * (len(edges) - 1)
    sums = np.interp(edges, bounds, np.concatenate(([0], np.cumsum(counts))))
    sums[0], sums[-1] = 0, counts.sum()
    found: list[int] = np.diff(np.rint(sums).astype(np.int64)).tolist()
    return found
