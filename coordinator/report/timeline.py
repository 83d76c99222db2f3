"""Makes the timeline of a run: its numbers over time as one document, for charts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.load_profile import LoadProfile
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.statistics.latency_matrix import (
    LatencyMatrix,
    bounds_of,
    buckets_of,
    percentile_of,
)

Ints = NDArray[np.int64]

#: Bins of time at most of the load.
BINS = 600
#: The generator spoilt a bin of time in which this share of the starts, or more, came later
#: than the limit.
SPOILT_SHARE = 0.1


def to_timeline(
    report: RunOutcome, summary: Mapping[str, Any], lag_limit_s: float
) -> dict[str, Any]:
    """Return the timeline of a run, which `storage.run_documents` stores.

    `report`: outcomes so far; `summary` becomes part of the document. `lag_limit_s`: start lag
    above which a start counts as late, seconds.
    """
    return {
        "at": report.finished_at,
        "summary": dict(summary),
        "workloads": [_workload(outcome, lag_limit_s) for outcome in report.workloads],
    }


def _workload(outcome: WorkloadOutcome, lag_limit_s: float) -> dict[str, Any]:
    over_time = outcome.statistics.over_time
    is_open = outcome.offered.is_open
    spoilt = _late_stretches(over_time.start_lag, lag_limit_s) if is_open else []
    return {
        "t0_at": outcome.t0_at,
        "elapsed_s": outcome.elapsed_s,
        "open": is_open,
        **over_time.to_dict(),
        "load": _load(outcome.statistics.profile, over_time.start_lag),
        "asked": [list(point) for point in outcome.asked],
        "cpu": outcome.cpu.points(),
        "failed": [list(point) for point in over_time.failures.points()],
        "marks": [dataclasses.asdict(mark) for mark in outcome.marks],
        "lag_limit_s": lag_limit_s,
        "spoilt": spoilt,
        "without_spoilt": _without(over_time.response, spoilt) if spoilt else None,
        "error_examples": {
            name: example.to_dict() for name, example in over_time.failures.examples.items()
        },
    }


def _load(profile: LoadProfile, start_lag: LatencyMatrix) -> dict[str, Any]:
    series = profile.series(BINS)
    due = start_lag.rebinned(BINS)
    return {
        "bin_s": series.bin_s,
        "starts": list(series.starts),
        "ends": list(series.ends),
        "failures": list(series.failures),
        "running": [round(value, 3) for value in series.running],
        "due_bin_s": due.width_s,
        "due": due.by_time().tolist(),
    }


def _late_stretches(start_lag: LatencyMatrix, lag_limit_s: float) -> list[list[float]]:
    """Return stretches with late starts: [from, to (s after t0), late starts, greatest lag (s)].

    A bin counts if at least the fraction `SPOILT_SHARE` of its starts was late; bins at most a
    second (or a bin) apart are joined.
    """
    counts, width_s = start_lag.counts(), start_lag.width_s
    if not counts.size:
        return []
    limit = int(buckets_of(np.array([int(lag_limit_s * 1e9)]))[0]) - start_lag.lowest + 1
    late = counts[:, max(limit, 0) :].sum(axis=1)
    all_ = counts.sum(axis=1)
    bad = np.flatnonzero((all_ > 0) & (late >= SPOILT_SHARE * all_) & (late > 0)).tolist()
    stretches: list[list[float]] = []
    for place in bad:
        columns = np.flatnonzero(counts[place])
        worst_s = float(bounds_of(columns[-1:] + start_lag.lowest)[1][0]) / 1e9
        begin_s, end_s = place * width_s, (place + 1) * width_s
        if stretches and begin_s - stretches[-1][1] <= max(width_s, 1.0):
            stretch = stretches[-1]
            stretch[1], stretch[2] = end_s, stretch[2] + int(late[place])
            stretch[3] = max(stretch[3], worst_s)
        else:
            stretches.append([begin_s, end_s, int(late[place]), worst_s])
    return stretches


def _without(response: LatencyMatrix, spoilt: list[list[float]]) -> dict[str, float] | None:
    """Return p95_s and p99_s of response times of arrivals due outside the stretches in `spoilt`.

    Seconds; None if there are no such arrivals.
    """
    counts = response.counts()
    middles = (np.arange(len(counts)) + 0.5) * response.width_s
    keep = np.ones(len(counts), bool)
    for begin_s, end_s, *_ in spoilt:
        keep &= (middles < begin_s) | (middles > end_s)
    left: Ints = counts[keep].sum(axis=0)
    found = {
        f"p{percent}_s": percentile_of(left, response.lowest, percent) / 1e9 for percent in (95, 99)
    }
    return None if math.isnan(found["p95_s"]) else found
