"""SLA limits and start lags of a run's workloads, for predictions of their durations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from osbench.coordinator.results.accounting.totals import is_open_load
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.features import ITERATION, Features
from osbench.edges.traces.analysis.what_if import DurationLimit, PredictedLoad
from osbench.edges.traces.collection.traced_iterations import traced_iterations


def predicted_loads(directory: RunDirectory, features: Features) -> tuple[PredictedLoad, ...]:
    """Return kind of load, SLA limits and start lags of each workload of a run, by number.

    Empty if the run has no summary. If rows of `features` are iterations, durations are response
    times, and limits on service times of open loads are left out. Raises DamagedRun.
    """
    summary = directory.read("summary.json") or {}
    asked = (directory.read("run.json") or {}).get("workloads", ())
    workloads = summary.get("workloads", ())
    if not workloads or len(asked) != len(workloads):
        return ()
    limits = [tuple(duration_limits(one.get("sla") or {})) for one in asked]
    lag = np.zeros(len(features), np.int64)
    is_open = [is_open_load(one["offered"]) for one in workloads]
    if features.unit == ITERATION:
        limits = [
            tuple(limit for limit in some if limit.of == "response" or not open_)
            for some, open_ in zip(limits, is_open, strict=True)
        ]
    elif any(limit.of == "response" for some in limits for limit in some):
        rows, _ = traced_iterations(directory, len(workloads), {})
        lags = dict(zip(rows.ids(), (rows.response - rows.service).tolist(), strict=True))
        lag = np.array([lags.get(trace, 0) for trace in features.traces], np.int64)
    return tuple(
        PredictedLoad(is_open=open_, limits=some, lag=lag)
        for open_, some in zip(is_open, limits, strict=True)
    )


def duration_limits(sla: Mapping[str, Any]) -> Iterator[DurationLimit]:
    """Yield the limits of an SLA on durations of iterations (not actions) over all of the load.

    Of `percentile`, `max_seconds_per_iteration` and `max_avg_duration`; limits of single actions,
    or over windows of time (`over_s`), are left out.
    """
    given = sla.get("percentile") or ()
    for one in [given] if isinstance(given, Mapping) else given:
        if "action" not in one and "over_s" not in one:
            yield DurationLimit(
                criterion="percentile",
                p=float(one["p"]),
                max_s=float(one["max_s"]),
                of=str(one.get("of", "service")),
            )
    for name, percent in (("max_seconds_per_iteration", 100.0), ("max_avg_duration", None)):
        if isinstance(limit := sla.get(name), int | float):
            yield DurationLimit(criterion=name, p=percent, max_s=float(limit))
