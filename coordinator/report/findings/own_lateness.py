"""The generator's own lateness in percentiles, where it is a noticeable part of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.coordinator.formatting import spaced
from osbench.coordinator.report.findings.load_bounds import GENERATOR
from osbench.coordinator.results.outcome import WorkloadOutcome

#: Part of a percentile from which the lateness at the same percentile is noticeable.
PART = 0.1
#: Least lateness that counts, seconds: timers of event loops are exact to a millisecond.
LEAST_S = 0.002
PERCENTS = (50, 95, 99)


def own_lateness(outcome: WorkloadOutcome) -> dict[str, Any]:
    """Lateness in seconds by percentile of the time that counts; None if it is not noticeable.

    At a percentile, event loops, threads and (for open loads) starts were late by so much or less.
    Starts that waited for a service or for the task's own limit are not the generator's.
    """
    statistics, is_open = outcome.statistics, outcome.offered.is_open
    times = (statistics.response if is_open else statistics.service).ok
    lags = [statistics.loop_lag, statistics.thread_lag]
    faults = [bound.fault for bound in outcome.bounds]
    if is_open and (not faults or GENERATOR in faults):
        lags.append(statistics.start_lag)
    found: dict[str, Any] = {"of": "response" if is_open else "service"}
    for percent in PERCENTS:
        late_s = max(lag.percentile(percent) / 1e9 if lag.count else 0.0 for lag in lags)
        noticed = times.count and late_s >= max(LEAST_S, PART * times.percentile(percent) / 1e9)
        found[f"p{percent}"] = late_s if noticed else None
    return found


def lateness_note(workload: Mapping[str, Any]) -> str:
    """A sentence on the percentiles that hold the generator's lateness; "" if none does."""
    # runs of older releases do not say
    own = workload.get("own_lateness") or {}
    times = workload["latency"][own.get("of", "service")]["ok"]
    parts = [
        f"up to {spaced(own[key])} of {key} {spaced(times[key])}"
        for key in (f"p{percent}" for percent in PERCENTS)
        if own.get(key) is not None and times[key] is not None
    ]
    if not parts:
        return ""
    return (
        f"of {own['of']} time {', '.join(parts)} may be the generator's own: its loops, threads or "
        "starts were as late"
    )
