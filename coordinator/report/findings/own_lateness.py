"""Finds how much of the latency may be the load generator's own lateness, if that is noticeable."""

from __future__ import annotations

from osbench.coordinator.formatting import spaced
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import OwnLateness
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.statistics.percentiles import percentile_key

#: Part of a percentile from which the generator's lateness in it is noticeable.
PART = 0.1
#: Least lateness that counts, seconds: timers of event loops are exact to a millisecond.
LEAST_S = 0.002
PERCENTS = (50, 95, 99)


def own_lateness(outcome: WorkloadOutcome) -> OwnLateness:
    """Return the generator's lateness (s) in each of `PERCENTS`; a field is None if not noticeable.

    It is the difference to the percentile as it may have been without the generator's delays, by
    which SLA criteria are disputed.
    """
    kind = "response" if outcome.offered.is_open else "service"
    without = outcome.delay.statistics_without
    times = getattr(outcome.statistics, kind).ok
    if without is None or not times.count:
        return OwnLateness(of=kind)
    less = getattr(without, kind).state("ok")
    found: dict[str, float | None] = {}
    for percent in PERCENTS:
        time_s = times.percentile(percent) / 1e9
        late_s = time_s - less.percentile(percent) / 1e9
        found[percentile_key(percent)] = late_s if late_s >= max(LEAST_S, PART * time_s) else None
    return OwnLateness(of=kind, **found)


def lateness_note(workload: WorkloadReport) -> str:
    """Return a message on percentiles that include the generator's lateness; "" if none do."""
    own = workload.own_lateness
    if own is None:
        return ""
    times = workload.times(own.of)
    keys = map(percentile_key, PERCENTS)
    known = ((key, own.percentile(key), times.percentile(key)) for key in keys)
    parts = [
        f"up to {spaced(late_s)} of {key} ({spaced(time_s)})"
        for key, late_s, time_s in known
        if late_s is not None and time_s is not None
    ]
    if not parts:
        return ""
    return (
        f"of {own.of} time {', '.join(parts)} may come from the load generator: its event loops, "
        "threads or starts were late"
    )
