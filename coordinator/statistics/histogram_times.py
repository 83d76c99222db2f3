"""Times of a histogram as reports have them where samples are not kept over time."""

from __future__ import annotations

from typing import Any

from osbench.common.histogram import Histogram
from osbench.coordinator.statistics.percentiles import interval_ranks

_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def times_of(histogram: Histogram) -> dict[str, Any]:
    """Count, mean, percentiles and maximum in seconds.

    None for percentiles that have no 95 % interval with so few samples.
    """
    count = histogram.count
    if not count:
        return {"count": 0, **dict.fromkeys(("mean", *_PERCENTILES, "max"))}
    found: dict[str, Any] = {"count": count, "mean": histogram.mean / 1e9}
    for name, percent in _PERCENTILES.items():
        enough = interval_ranks(count, percent) is not None
        found[name] = histogram.percentile(percent) / 1e9 if enough else None
    return {**found, "max": histogram.max / 1e9}
