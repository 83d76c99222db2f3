"""Estimates the overhead of tracing from the run itself.

Iterations are selected for tracing by a hash of their numbers, so the others are a control group:
any difference is due to tracing.
"""

from __future__ import annotations

import math

from osbench.common.values.histogram import Histogram, rank
from osbench.coordinator.results.accounting.totals import Cost, Shift
from osbench.coordinator.results.statistics.percentiles import interval_ranks
from osbench.edges.traces.collection.traced_iterations import Latencies

_Z = 1.96


def tracing_overhead(latencies: Latencies) -> Cost | None:
    """Return how many seconds tracing adds to p50 and p99 of service times.

    None if `latencies` has no traced, or no untraced, iterations.
    """
    traced, untraced = latencies.traced, latencies.untraced
    if not traced.count or not untraced.count:
        return None
    return Cost(
        traced=traced.count,
        untraced=untraced.count,
        p50=_shift(traced, untraced, 50.0),
        p99=_shift(traced, untraced, 99.0),
    )


def _shift(traced: Histogram, untraced: Histogram, percent: float) -> Shift:
    """Return traced minus untraced for a percentile, seconds, with its 95 % interval.

    The 95 % interval is None if there are too few iterations. After Price and Bonett, Journal of
    Statistical Computation and Simulation 72, 2002. Standard errors are derived from intervals of
    order statistics.
    """
    added = traced.percentile(percent) - untraced.percentile(percent)
    errors = [_error(histogram, percent) for histogram in (traced, untraced)]
    known = [error for error in errors if error is not None]
    if len(known) < 2:
        return Shift(added_s=added / 1e9, low_s=None, high_s=None)
    spread = _Z * math.hypot(*known)
    return Shift(added_s=added / 1e9, low_s=(added - spread) / 1e9, high_s=(added + spread) / 1e9)


def _error(histogram: Histogram, percent: float) -> float | None:
    bounds = interval_ranks(histogram.count, percent)
    if bounds is None:
        return None
    low, _, high = histogram.at_ranks((bounds[0], rank(histogram.count, percent), bounds[1]))
    return (high - low) / (2 * _Z)
