"""95 % intervals of percentiles of one run, from blocks of time.

Latencies of one moment resemble each other: a queue that is long now makes the next iterations slow
as well. So the rank of a percentile varies more than that of independent samples. The run is
divided into 40 blocks of time and into 20. In each division the variance between blocks, and the
correlation of neighbouring blocks as that of a first-order process, give the variance of the rank;
Student's t allows for how few blocks are independent. The wider result counts. The ranks around the
percentile bound the interval (Woodruff, Journal of the American Statistical Association 47, 1952;
batch means with the correlation of the batches: Tafazzoli and Wilson, IIE Transactions 43, 2011;
degrees of freedom: Bayley and Hammersley, Supplement to the Journal of the Royal Statistical
Society 8, 1946).

An interval is never left out because it is wide: the remaining ones would be of the runs that
missed the trouble. If the run cannot exclude a percentile beyond all its durations, the upper bound
is infinite.

docs/adr/0013-intervals-and-comparison.md has measurements and reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.block_division import Division, division_of
from osbench.coordinator.results.statistics.interval_doubt import Doubt, doubt
from osbench.coordinator.results.statistics.latency_matrix import (
    LatencyMatrix,
    latencies_at,
    resolved_at,
)
from osbench.coordinator.results.statistics.percentiles import REPORTED
from osbench.coordinator.results.statistics.student_t import quantile

Ints = NDArray[np.int64]

#: Normal deviate of a two-sided 95 % interval: independent samples are never surer than this.
_Z = 1.96
#: Percentiles above are seldom bounded, which needs no word.
_MOST_DOUBTED = 99.0


@dataclass(frozen=True, kw_only=True)
class BlockEstimate:
    """A percentile of the durations of one run with its 95 % interval, in ns and in ranks."""

    #: 0..100.
    percent: float
    value_ns: float
    #: Bounds of the 95 % interval, the upper one infinite if the run sets none; None if the run
    #: sets no lower bound either.
    interval_ns: tuple[float, float] | None
    #: The ranks (from 0 to the number of iterations) that bound it, in the same way.
    interval_ranks: tuple[float, float] | None
    #: Variance of its rank, in that of independent samples; None without blocks.
    design_effect: float | None


@dataclass(frozen=True, kw_only=True)
class BlockIntervals:
    """Percentiles of one run with 95 % intervals, and the reason if some lack bounds."""

    estimates: tuple[BlockEstimate, ...]
    #: Blocks of time in the finer division; 0 if the run is too short for any.
    blocks: int
    #: Seconds of such a block; 0 without blocks.
    block_s: float
    #: Reason if intervals are missing, unbounded or wide; None if there is none.
    doubt: Doubt | None


def block_intervals(
    matrix: LatencyMatrix, percents: Iterable[float] = REPORTED
) -> BlockIntervals | None:
    """Return percentiles (0 to 100) with 95 % intervals from blocks of time, in the given order.

    None if the matrix is empty. Bins before the first and after the last iteration are left out.
    """
    counts, width_s = matrix.counts(), matrix.width_s
    if not counts.sum():
        return None
    # bins before the first and after the last iteration are not part of the load
    busy = np.flatnonzero(counts.sum(axis=1))
    counts = counts[busy[0] : busy[-1] + 1]
    by_bucket = counts.sum(axis=0)
    division = division_of(counts)
    estimates = tuple(
        _estimate(by_bucket, matrix.lowest, division, percent) for percent in percents
    )
    span_s = len(counts) * width_s
    return BlockIntervals(
        estimates=estimates,
        blocks=division.blocks if division else 0,
        block_s=span_s / division.blocks if division else 0.0,
        doubt=doubt(
            division,
            int(by_bucket.sum()),
            span_s,
            {one.percent: one.interval_ranks for one in estimates if one.percent <= _MOST_DOUBTED},
        ),
    )


def _estimate(
    by_bucket: Ints, lowest: int, division: Division | None, percent: float
) -> BlockEstimate:
    share, total = percent / 100, float(by_bucket.sum())
    effect = ranks = None
    if division is not None and 0 < share < 1:
        independent = total * share * (1 - share)
        variance, freedom = max(
            division.variances(share), key=lambda one: one[0] * _deviates(one[1]) ** 2
        )
        half = max(_deviates(freedom) * math.sqrt(variance), _Z * math.sqrt(independent))
        effect = max(1.0, variance / independent)
        ranks = rank_bounds(total, share, half)
    value = float(latencies_at(by_bucket, lowest, np.array([share * total]))[0])
    return BlockEstimate(
        percent=percent,
        value_ns=value,
        interval_ns=_latencies(by_bucket, lowest, share * total, ranks) if ranks else None,
        interval_ranks=ranks,
        design_effect=effect,
    )


def rank_bounds(total: float, share: float, half: float) -> tuple[float, float] | None:
    """Return the ranks that bound a percentile's 95 % interval; None if the lower one is below 1.

    `total` iterations; `share`: the percentile as a fraction, 0 to 1; `half`: half the interval in
    ranks. The lower rank is found on the scale of logits, which never leaves the run. The upper
    rank is infinite if the run has too few slow moments to know the percentile.
    """
    odds = math.log(share / (1 - share))
    apart = half / (total * share * (1 - share))
    low = total / (1 + math.exp(min(apart - odds, 700.0)))
    high = share * total + half
    if low < 1:
        return None
    return low, high if high <= total - 1 else math.inf


def _latencies(
    by_bucket: Ints, lowest: int, rank: float, ranks: tuple[float, float]
) -> tuple[float, float]:
    low, high = ranks
    return (
        resolved_at(by_bucket, lowest, low, rank - low)[0],
        math.inf if math.isinf(high) else resolved_at(by_bucket, lowest, high, high - rank)[1],
    )


@lru_cache(maxsize=1024)
def _quantile(tenths: int) -> float:
    return quantile(0.975, tenths / 10)


def _deviates(freedom: float) -> float:
    return _quantile(round(10 * freedom))
