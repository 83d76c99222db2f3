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
is infinite. A doubt has the reason why intervals are missing, unbounded or wide.

docs/adr/0013-intervals-and-comparison.md has measurements and reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.block_division import (
    COARSE,
    Division,
    coarser,
    correlation,
    division_of,
)
from osbench.coordinator.results.statistics.latency_matrix import (
    LatencyMatrix,
    latencies_at,
    resolved_at,
)
from osbench.coordinator.results.statistics.percentiles import REPORTED
from osbench.coordinator.results.statistics.student_t import quantile

Ints = NDArray[np.int64]
Ranks = tuple[float, float] | None

#: Normal deviate of a two-sided 95 % interval: independent samples are never surer than this.
_Z = 1.96
#: Percentiles above are seldom bounded, which needs no word.
_MOST_DOUBTED = 99.0
#: Correlation of the median's blocks with time from which latency drifts; of independent blocks
#: less than one run in a thousand has as much.
_DRIFTS = 0.7
#: Correlation of neighbouring blocks from which dependence makes intervals wide.
_DEPENDS = 0.5
#: Deviates of an interval from many blocks, and the greatest multiple of a run's length to advise.
_DEVIATES, _MOST_TIMES = 2.1, 1000.0


class DoubtCause(Enum):
    """Reason why a run does not bound percentiles, or bounds them badly; the value is a phrase."""

    SHORT = "iterations were scheduled over less than 5 s"
    ROSE = "latency rose through the load"
    FELL = "latency fell through the load"
    STRETCHES = "latency kept its level for long stretches"
    FEW = "too few separate moments were that slow"


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Percentiles (0 to 100) of a run without interval or upper bound, and the reason."""

    cause: DoubtCause
    #: Percentiles without an interval.
    missing: tuple[float, ...] = ()
    #: Percentiles without an upper bound.
    unbounded: tuple[float, ...] = ()
    #: Seconds of a load that would bound the least of these; None: not known.
    bounded_by_s: float | None = None

    @property
    def note(self) -> str:
        """The doubt as a message without full stop, with a sufficient length of load if known."""
        if self.cause is DoubtCause.SHORT:
            return f"no intervals: {self.cause.value}"
        which = []
        if self.missing:
            which.append(f"no interval of {_names(self.missing)}")
        if self.unbounded:
            which.append(f"no upper bound of {_names(self.unbounded)}")
        if not which:
            return f"{self.cause.value}: percentiles depend on when it began and ended"
        advice = ""
        if self.bounded_by_s is not None:
            advice = (
                f"; run for about {_length(self.bounded_by_s)} to bound p{min(self.unbounded):g}"
            )
        return f"{' and '.join(which)}: {self.cause.value}{advice}"


def doubt(
    division: Division | None, total: int, span_s: float, ranks: Mapping[float, Ranks]
) -> Doubt | None:
    """Return why percentiles lack an interval or upper bound, or that latency drifted.

    None if neither. `ranks`: ranks of the interval by percentile (0 to 100), None if it has none.
    `total`: count of iterations; `span_s`: seconds of load; `division`: None if the load was too
    short, which is then the reason.
    """
    missing = tuple(percent for percent, found in ranks.items() if found is None)
    if division is None:
        return Doubt(cause=DoubtCause.SHORT, missing=missing)
    unbounded = tuple(percent for percent, found in ranks.items() if found and math.isinf(found[1]))
    drift = _drift(division)
    if drift is not None:
        return Doubt(cause=drift, missing=missing, unbounded=unbounded)
    if not missing and not unbounded:
        return None
    share = min(unbounded or missing) / 100
    lasting = correlation(division.deviations(share)) >= _DEPENDS
    return Doubt(
        cause=DoubtCause.STRETCHES if lasting else DoubtCause.FEW,
        missing=missing,
        unbounded=unbounded,
        bounded_by_s=_bounded_by_s(division, total, span_s, share) if unbounded else None,
    )


def _drift(division: Division) -> DoubtCause | None:
    if division.blocks < COARSE:
        return None
    levels = coarser(division.deviations(0.5)) / np.maximum(coarser(division.sizes), 1.0)
    if not levels.std():
        return None
    by = float(np.corrcoef(levels, np.arange(COARSE))[0, 1])
    # more iterations below the median of the run mean lower latencies
    return None if abs(by) < _DRIFTS else DoubtCause.FELL if by > 0 else DoubtCause.ROSE


def _bounded_by_s(division: Division, total: int, span_s: float, share: float) -> float | None:
    """Return the seconds of load that would give a percentile an upper bound, or None.

    `share`: the percentile as a fraction. None if the run is long enough by this estimate, or if
    the load would be more than `_MOST_TIMES` times as long. The standard error of a rank, as a
    fraction of all ranks, falls with the root of the length.
    """
    variance = max(total * share * (1 - share), *(one for one, _ in division.variances(share)))
    times = ((_DEVIATES * math.sqrt(variance) + 1) / (total * (1 - share))) ** 2
    return times * span_s if 1 < times <= _MOST_TIMES else None


def _length(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _names(percents: Sequence[float]) -> str:
    *first, last = (f"p{percent:g}" for percent in sorted(percents))
    return f"{', '.join(first)} and {last}" if first else last


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

    None if the matrix is empty. A load too short for blocks gives no intervals. Bins before the
    first and after the last iteration are left out. The doubt is on percentiles up to 99 only.
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
