"""Percentiles with 95 % confidence intervals, from order statistics of a histogram.

The interval is distribution-free: the ranks n p -+ 1.96 sqrt(n p (1 - p)) enclose the percentile
whatever the distribution (Le Boudec, Performance Evaluation of Computer and Communication Systems,
EPFL Press 2010, section 2.2; Lancet, USENIX ATC 2019, uses the same).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.values.histogram import Histogram, rank

#: Percentiles in reports.
REPORTED = (50.0, 90.0, 95.0, 99.0, 99.9)

#: Quantile of the normal distribution for 95 %, two-sided.
_Z = 1.96


@dataclass(frozen=True, kw_only=True)
class PercentileEstimate:
    """A percentile of a histogram, with its 95 % confidence interval; nanoseconds."""

    #: 0..100.
    percent: float
    #: Nanoseconds.
    value: int
    #: Bounds in nanoseconds of the 95 % confidence interval; None: too few samples to say.
    interval: tuple[int, int] | None


def percentile_key(percent: float) -> str:
    """Return the name of a percentile (0 to 100) in reports: p50 for 50, p999 for 99.9."""
    return f"p{percent:g}".replace(".", "")


def interval_ranks(count: int, percent: float) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the samples that bound a percentile's 95 % interval.

    `percent` is 0 to 100. None if `count` samples are too few for the interval.
    """
    share = percent / 100
    spread = _Z * math.sqrt(count * share * (1 - share))
    low = math.floor(count * share - spread)
    high = math.ceil(count * share + spread) + 1
    return (low, high) if low >= 1 and high <= count else None


def percentiles(
    histogram: Histogram, percents: Sequence[float] = REPORTED
) -> tuple[PercentileEstimate, ...]:
    """Return percentiles (0 to 100) with intervals, in the order of `percents`; () if empty."""
    if not histogram.count:
        return ()
    ranks = [rank(histogram.count, percent) for percent in percents]
    bounds = [interval_ranks(histogram.count, percent) for percent in percents]
    # one pass over the counts for all of them
    wanted = ranks + [bound for pair in bounds if pair for bound in pair]
    found = iter(histogram.at_ranks(wanted))
    values = [next(found) for _ in ranks]
    return tuple(
        PercentileEstimate(
            percent=percent, value=value, interval=(next(found), next(found)) if pair else None
        )
        for percent, value, pair in zip(percents, values, bounds, strict=True)
    )


def least_percentile(histogram: Histogram, percent: float, more: int | None) -> int:
    """Return the least value, in nanoseconds, that a percentile can fall to by further samples.

    `percent` is 0 to 100; `more`: greatest number of further samples, None if it is unlimited. 0 if
    it can fall to any value, or the histogram is empty.
    """
    if not histogram.count:
        return 0
    if percent == 100:
        return histogram.max
    if more is None:
        return 0
    # all of them below the present ones: samples move up by as many ranks
    position = rank(histogram.count + more, percent) - more
    return histogram.at_ranks((position,))[0] if position >= 1 else 0


_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def times_of(histogram: Histogram) -> dict[str, Any]:
    """Return count, mean, p50, p95, p99 and max of a histogram, by these keys; times in seconds.

    A percentile is None if too few samples give it a 95 % interval. Without samples the count is 0
    and all others are None.
    """
    count = histogram.count
    if not count:
        return {"count": 0, **dict.fromkeys(("mean", *_PERCENTILES, "max"))}
    found: dict[str, Any] = {"count": count, "mean": histogram.mean / 1e9}
    for name, percent in _PERCENTILES.items():
        enough = interval_ranks(count, percent) is not None
        found[name] = histogram.percentile(percent) / 1e9 if enough else None
    return {**found, "max": histogram.max / 1e9}
