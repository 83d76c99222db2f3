"""Times of a report, in seconds: from histograms, with 95 % intervals from latency over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from osbench.common.values.histogram import Histogram, rank
from osbench.coordinator.report.model.time_figures import ByState, TimeFigures
from osbench.coordinator.results.accounting.workload_statistics import Timings
from osbench.coordinator.results.statistics.block_intervals import BlockIntervals, block_intervals
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix
from osbench.coordinator.results.statistics.percentiles import REPORTED, percentile_key

_NAMES = tuple(percentile_key(percent) for percent in REPORTED)


def measured_times(timings: Timings, ok: LatencyMatrix | None) -> ByState:
    """Return times in seconds by the state in which iterations or actions ended.

    `ok`: times of successes over time, for 95 % intervals; None: no intervals. Other states have
    none.
    """
    return ByState(
        ok=time_figures(timings.ok, ok),
        failed=time_figures(timings.failed, None),
        timed_out=time_figures(timings.timed_out, None),
    )


def time_figures(histogram: Histogram, over_time: LatencyMatrix | None) -> TimeFigures:
    """Return count, mean, extremes and percentiles of a histogram, in seconds.

    `over_time`: the same durations over time, for 95 % intervals; None: no intervals. For an empty
    histogram the count is 0 and the times are None.
    """
    if not histogram.count:
        return TimeFigures(ci=dict.fromkeys(_NAMES))
    found = block_intervals(over_time) if over_time is not None else None
    bounds = [one.interval_ranks for one in found.estimates] if found else [None] * len(_NAMES)
    ranks = [rank(histogram.count, percent) for percent in REPORTED]
    # one pass over the counts for all of them
    wanted = [place for pair in bounds if pair for place in _whole(pair)]
    values = iter(histogram.at_ranks(ranks + wanted))
    at: dict[str, Any] = {name: next(values) / 1e9 for name in _NAMES}
    intervals = [_interval([next(values) / 1e9 for _ in _whole(pair)]) for pair in bounds]
    return TimeFigures(
        count=histogram.count,
        min=histogram.min / 1e9,
        mean=histogram.mean / 1e9,
        max=histogram.max / 1e9,
        **at,
        ci=dict(zip(_NAMES, intervals, strict=True)),
        **(_blocks(found) if found else {}),
    )


def _whole(ranks: tuple[float, float] | None) -> list[int]:
    """Return the ranks of samples (from 1) that bound an interval: lower, then upper.

    [] for None; only the lower one if the upper bound is infinite.
    """
    if ranks is None:
        return []
    low, high = ranks
    return [int(low)] if math.isinf(high) else [int(low), math.ceil(high)]


def _interval(bounds: list[float]) -> tuple[float | None, ...] | None:
    return (bounds[0], bounds[1] if len(bounds) > 1 else None) if bounds else None


def _blocks(found: BlockIntervals) -> Mapping[str, Any]:
    note = found.doubt.note if found.doubt else None
    return {"ci_note": note, "blocks": found.blocks, "block_s": found.block_s}
