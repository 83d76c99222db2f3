"""95 % intervals of percentiles from blocks of time, for latencies that depend on one another.

Latencies of one moment resemble each other: a queue that is long now makes the next iterations
slow as well. Intervals that take samples as independent are then far too narrow. Here the run is
divided into blocks of time, longer than that dependence lasts, and the spread between blocks
says by how much more the rank of a percentile varies than with independent samples: its design
effect. The ranks n p -+ t sqrt(effect n p (1 - p)) bound the interval (Woodruff, Journal of the
American Statistical Association 47, 1952, for samples in clusters; Heidelberger and Lewis,
Operations Research 32, 1984, on quantiles of dependent samples).

docs/adr/0013-intervals-and-comparison.md has what was measured, and why it is done so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.statistics.latency_matrix import LatencyMatrix, latencies_at
from osbench.coordinator.statistics.percentiles import REPORTED
from osbench.coordinator.statistics.student_t import quantile

Ints = NDArray[np.int64]

#: Blocks below which there is no interval.
FEWEST = 10
#: Seconds of a block at least, where the run is long enough for `FEWEST` of them.
_LEAST_S = 5.0
#: Length of a block in integrated autocorrelation times.
_TIMES = 10.0
#: Autocorrelations at most that are summed.
_LAGS = 200
#: Where the design effect is measured as well. Clusters of slow iterations are about as long
#: at each of these levels, but there are more of them at the lower ones.
_LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98)


@dataclass(frozen=True, kw_only=True)
class BlockEstimate:
    """A percentile of a run, in nanoseconds."""

    #: 0..100.
    percent: float
    value_ns: float
    #: Bounds of the 95 % interval; None where the run does not support one.
    interval_ns: tuple[float, float] | None
    #: The ranks (from 0 to the number of iterations) that bound it.
    interval_ranks: tuple[float, float] | None
    #: Variance of its rank, in that of independent samples; None without blocks.
    design_effect: float | None


@dataclass(frozen=True, kw_only=True)
class BlockIntervals:
    """Percentiles of a run with intervals."""

    estimates: tuple[BlockEstimate, ...]
    #: Blocks of time that the intervals are from; 0 where there are too few for any.
    blocks: int
    #: Seconds of a block; 0 without blocks.
    block_s: float

    @property
    def about(self) -> str:
        """What the intervals are from, or why there are none, as a sentence."""
        if self.blocks:
            return f"95 % intervals from {self.blocks} blocks of {self.block_s:.3g} s"
        return f"no intervals: the run is too short for {FEWEST} independent blocks of time"


def block_intervals(
    matrix: LatencyMatrix, percents: Iterable[float] = REPORTED
) -> BlockIntervals | None:
    """Percentiles with intervals from blocks of time; None where nothing was counted."""
    counts, width_s = matrix.counts(), matrix.width_s
    if not counts.sum():
        return None
    # bins before the first and after the last iteration are not part of the load
    busy = np.flatnonzero(counts.sum(axis=1))
    counts = counts[busy[0] : busy[-1] + 1]
    length = _block_bins(counts, width_s)
    blocks = len(counts) // length
    by_bucket = counts.sum(axis=0)
    spread = _BlockSpread(counts, blocks) if blocks >= FEWEST else None
    return BlockIntervals(
        estimates=tuple(
            _estimate(by_bucket, matrix.lowest, spread, percent) for percent in percents
        ),
        blocks=blocks if spread else 0,
        block_s=len(counts) / blocks * width_s if spread else 0.0,
    )


def correlation_bins(counts: Ints) -> float:
    """The integrated autocorrelation time of latency in bins of time; 0.5 where there is none.

    Of the sums by bin of ranks, which no single extreme value decides.
    """
    by_bucket = counts.sum(axis=0)
    total = int(by_bucket.sum())
    ranks = (np.cumsum(by_bucket) - by_bucket / 2) / total - 0.5
    series = counts @ ranks
    series -= series.mean()
    power = float(series @ series)
    if len(series) < 4 or power <= 0:
        return 0.5
    size = len(series)
    transformed = np.fft.rfft(series, 2 * size)
    lags = min(size // 4, _LAGS)
    correlations = np.fft.irfft(transformed * np.conj(transformed))[1 : lags + 1] / power
    # what lies within chance is not summed, nor anything behind it
    chance = 2 / math.sqrt(size)
    lost = np.flatnonzero(correlations < chance)
    return 0.5 + float(correlations[: lost[0] if len(lost) else lags].sum())


def _block_bins(counts: Ints, width_s: float) -> int:
    """Bins of a block."""
    span_s = len(counts) * width_s
    correlated = correlation_bins(counts)
    # short runs have shorter blocks, as long as their latencies depend on each other briefly
    least_s = min(_LEAST_S, span_s / FEWEST)
    times = _TIMES if correlated > 0.5 or span_s >= FEWEST * _LEAST_S else 0.0
    return max(1, math.ceil(max(times * correlated, least_s / width_s) - 1e-9))


class _BlockSpread:
    """How much ranks vary between blocks."""

    def __init__(self, counts: Ints, blocks: int) -> None:
        begins = np.arange(blocks) * len(counts) // blocks
        by_block = np.add.reduceat(counts, begins, axis=0)
        self.blocks = blocks
        self._below = np.cumsum(by_block, axis=1)
        self._sizes = self._below[:, -1].astype(np.float64)
        self._sums = self._below.sum(axis=0)
        levels = {level: self._at(level) for level in _LEVELS}
        self._levels = levels

    def effect(self, share: float) -> float:
        """The design effect of a percentile: the greatest of those up to it, at least 1."""
        lower = (effect for level, effect in self._levels.items() if level <= share)
        return max(1.0, self._at(share), *lower)

    def _at(self, share: float) -> float:
        total = self._sizes.sum()
        wanted = share * total
        column = int(np.searchsorted(self._sums, wanted))
        below = self._below[:, column].astype(np.float64)
        before = self._below[:, column - 1] if column else np.zeros(self.blocks)
        inside = float(below.sum() - before.sum())
        if inside > 0:
            below = before + (below - before) * ((wanted - before.sum()) / inside)
        off = below - share * self._sizes
        variance = self.blocks / (self.blocks - 1) * float(off @ off)
        return float(variance / (total * share * (1 - share)))


def _estimate(
    counts: Ints, lowest: int, spread: _BlockSpread | None, percent: float
) -> BlockEstimate:
    """`counts` by bucket, over all time."""
    share, total = percent / 100, float(counts.sum())
    effect = bounds = None
    if spread is not None and 0 < share < 1:
        effect = spread.effect(share)
        # as many independent iterations lie beyond the percentile: few of them say little of
        # their own spread
        beyond = total * min(share, 1 - share) / effect
        bounds = _bounds(total, share, effect, min(spread.blocks - 1, beyond))
    ranks = np.array([share * total, *(bounds or ())])
    value, *interval = latencies_at(counts, lowest, ranks).tolist()
    return BlockEstimate(
        percent=percent,
        value_ns=value,
        interval_ns=(interval[0], interval[1]) if interval else None,
        interval_ranks=bounds,
        design_effect=effect,
    )


def _bounds(
    total: float, share: float, effect: float, freedom: float
) -> tuple[float, float] | None:
    if freedom < 2:
        return None
    half = quantile(0.975, freedom) * math.sqrt(effect * total * share * (1 - share))
    low, high = share * total - half, share * total + half
    return None if low < 1 or high > total - 1 else (low, high)
