"""Finds how much of the latency may be the load generator's own lateness, if that is noticeable."""

from __future__ import annotations

from osbench.coordinator.formatting import spaced
from osbench.coordinator.report.findings.load_bounds import GENERATOR
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import OwnLateness
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.statistics.percentiles import percentile_key

#: Part of a percentile from which the lateness at the same percentile is noticeable.
PART = 0.1
#: Least lateness that counts, seconds: timers of event loops are exact to a millisecond.
LEAST_S = 0.002
PERCENTS = (50, 95, 99)


def own_lateness(outcome: WorkloadOutcome) -> OwnLateness:
    """Return the generator's own lateness in s at each of `PERCENTS`; None if not noticeable.

    It is the greatest lag of event loops, threads and (for open loads) starts at that percentile.
    Starts that waited for the service or for the task's own limit are left out.
    """
    statistics, is_open = outcome.statistics, outcome.offered.is_open
    times = (statistics.response if is_open else statistics.service).ok
    lags = [statistics.loop_lag, statistics.thread_lag]
    faults = [bound.fault for bound in outcome.bounds]
    if is_open and (not faults or GENERATOR in faults):
        lags.append(statistics.start_lag)
    found: dict[str, float | None] = {}
    for percent in PERCENTS:
        late_s = max(lag.percentile(percent) / 1e9 if lag.count else 0.0 for lag in lags)
        noticed = times.count and late_s >= max(LEAST_S, PART * times.percentile(percent) / 1e9)
        found[percentile_key(percent)] = late_s if noticed else None
    return OwnLateness(of="response" if is_open else "service", **found)


def lateness_note(workload: WorkloadReport) -> str:
    """Return a message on percentiles that include the generator's lateness; "" if none do."""
    own = workload.own_lateness
    if own is None:
        return ""
    times = workload.times(own.of)
    keys = map(percentile_key, PERCENTS)
    known = ((key, own.percentile(key), times.percentile(key)) for key in keys)
    parts = [
        f"up to {spaced(late_s)} of {key} {spaced(time_s)}"
        for key, late_s, time_s in known
        if late_s is not None and time_s is not None
    ]
    if not parts:
        return ""
    return (
        f"of {own.of} time {', '.join(parts)} may be the generator's own: its loops, threads or "
        "starts were as late"
    )
