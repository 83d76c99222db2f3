"""Selects the numbers by which runs are compared: percentiles of workloads and atomic actions.

A percentile is compared if each run has enough iterations, by its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from osbench.coordinator.report.model.time_figures import ByState, TimeFigures
from osbench.coordinator.results.statistics.percentiles import percentile_key
from osbench.edges.history.comparison.compared_run import ComparedRun

#: Percentiles that are compared. More of them would each need clearer evidence.
COMPARED = (50.0, 95.0, 99.0)
#: Most actions of a workload: the actions with the most time.
_ACTIONS = 20
#: Share of an iteration's time from which an action is the same as the iteration.
_WHOLE = 0.99
#: Iterations beyond a percentile that each run must have for the percentile to be compared.
_BEYOND = 10


@dataclass(frozen=True, kw_only=True, order=True)
class SeriesKey:
    """Name of a compared percentile (0 to 100); the action is "" for the whole iteration."""

    workload: str
    action: str
    percent: float


def common_workloads(runs: Sequence[ComparedRun]) -> list[str]:
    """Return the names of the workloads that all runs have, in the order of the first run.

    Raises IndexError without runs.
    """
    return [name for name in runs[0].workloads if all(name in run.workloads for run in runs)]


def common_keys(runs: Sequence[ComparedRun], workload: str) -> list[SeriesKey]:
    """Return the percentiles of a workload for which all runs have enough iterations.

    Enough are `_BEYOND` above the percentile. Percentiles of the iteration come first. Left out are
    percentiles of 0 s and actions as long as the iteration, in some run, and all but the `_ACTIONS`
    actions with the most time.
    """
    found = []
    for action in ("", *_actions(runs, workload)):
        counts = [_times(run, workload, action).count for run in runs]
        keys = (
            SeriesKey(workload=workload, action=action, percent=percent)
            for percent in COMPARED
            if min(counts) * (1 - percent / 100) >= _BEYOND
        )
        # of 0 there is no ratio
        found += [key for key in keys if len(log_values(runs, key)) == len(runs)]
    return found


def log_value(run: ComparedRun, key: SeriesKey) -> float | None:
    """Return the natural logarithm of a run's percentile in seconds; None if it is 0 or missing."""
    times = _times(run, key.workload, key.action)
    value = times.percentile(percentile_key(key.percent))
    # a file that others wrote may have a negative one
    return math.log(value) if value is not None and value > 0 else None


def log_values(runs: Sequence[ComparedRun], key: SeriesKey) -> list[float]:
    """Return `log_value` of each run, in order; runs without the percentile are left out."""
    found = (log_value(run, key) for run in runs)
    return [value for value in found if value is not None]


def _times(run: ComparedRun, workload: str, action: str) -> TimeFigures:
    """Return the service times of successful iterations or, for an `action`, its times.

    Without samples if the run lacks the workload or action.
    """
    found = run.workloads.get(workload)
    if found is None:
        return TimeFigures()
    return found.actions.get(action, ByState()).ok if action else found.times("service")


def _actions(runs: Sequence[ComparedRun], workload: str) -> list[str]:
    whole = [_times(run, workload, "").sum_s for run in runs]
    spent: dict[str, float] = {}
    for name in runs[0].workloads[workload].actions:
        times = [_times(run, workload, name).sum_s for run in runs]
        # an action that is the iteration itself would only be one more thing to test
        if all(0 < one < _WHOLE * all_ for one, all_ in zip(times, whole, strict=True)):
            spent[name] = sum(times)
    most = sorted(spent, key=lambda name: -spent[name])[:_ACTIONS]
    return [name for name in spent if name in most]
