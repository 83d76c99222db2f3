"""Computes the data of a workload's charts as plain lists; time axes are seconds after t0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.coordinator.report.html.criterion_rows import CriterionRow
from osbench.coordinator.report.html.duration_histogram import DurationHistogram, histogram
from osbench.coordinator.report.html.latency_series import (
    PER_DECADE,
    Bands,
    Heat,
    bands,
    curve,
    heat,
)
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.model.json_codec import to_json
from osbench.coordinator.report.model.time_figures import TimeFigures

#: Points of failed iterations in a chart.
FAILED_POINTS = 2000
#: Bins of the load at most, and seconds of one at least, if the load is long enough.
_LOAD_BINS = 150
_LOAD_BIN_S = 1.0
_SHORT_BINS = 20
#: Iterations that must lie beyond a percentile for it to be marked on the curve.
_BEYOND = 3
_CURVE_KEYS = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))


@dataclass(frozen=True, kw_only=True)
class LoadBins:
    """Iterations due, started, ended well and failed, per second, in each bin of time after t0.

    All lists have an entry per bin of `width_s` seconds.
    """

    width_s: float
    due: list[float]
    started: list[float]
    ok: list[float]
    failed: list[float]
    #: Mean number of iterations that ran.
    running: list[float]


@dataclass(frozen=True, kw_only=True)
class ChartData:
    """Data of a workload's charts over time and of durations; without charts of a staircase."""

    end_s: float
    load: LoadBins
    #: Asked for: seconds and a rate, or a number of users, to be joined by lines.
    asked: list[list[float]]
    bands: Bands
    heat: Heat
    curve: list[list[float]]
    other_curve: list[list[float]]
    histogram: DurationHistogram


def charts_of(workload: WorkloadFacts) -> ChartData:
    """Compute the data of all charts of a workload, from its timeline and report."""
    end_s = _end_s(workload)
    report = workload.report
    other = workload.service if report.is_open else workload.response
    kind = "service" if report.is_open else "response"
    return ChartData(
        end_s=end_s,
        load=_load(workload.timeline.get("load") or {}, end_s),
        asked=_asked_points(workload, end_s),
        bands=bands(workload.main_matrix, end_s),
        heat=heat(workload.main_matrix),
        curve=curve(workload.main_matrix, report.main_times.max),
        other_curve=curve(other, report.times(kind).max),
        histogram=histogram(workload.main_matrix, [one[1] for one in workload.list_of("failed")]),
    )


def payload(
    workload: WorkloadFacts,
    data: ChartData,
    criteria: Sequence[CriterionRow],
) -> dict[str, Any]:
    """Return the chart data as JSON values for the page's script.

    Durations are in milliseconds (in `staircase` seconds), times in seconds after t0. `criteria`
    give the limits to draw. `examples`, marks in the heat map, come from parts of the page. At most
    `FAILED_POINTS` failed iterations.
    """
    failed = workload.list_of("failed")[:FAILED_POINTS]
    return {
        "end": data.end_s,
        "open": workload.report.is_open,
        "kind": workload.report.kind,
        "load": {
            "width": round(data.load.width_s, 6),
            "started": data.load.started,
            "running": data.load.running,
            "ok": data.load.ok,
            "failed": data.load.failed,
        },
        "asked": data.asked,
        "bands": {"width": data.bands.width_s, "rows": data.bands.rows},
        "p99": {"width": data.bands.p99_width_s, "rows": data.bands.p99},
        "heat": {
            "width": data.heat.width_s,
            "perDecade": PER_DECADE,
            "cells": data.heat.cells,
        },
        "failed": [
            [round(due, 3), round(1e3 * latency, 3), iteration]
            for due, latency, iteration in failed
            if latency > 0
        ],
        "examples": [],
        "marks": [
            {
                "kind": mark["kind"],
                "from": round(mark["from_s"], 3),
                "to": round(mark["to_s"], 3),
                "label": mark["label"],
            }
            for mark in workload.list_of("marks")
        ],
        "spoilt": [[round(one[0], 3), round(one[1], 3)] for one in workload.list_of("spoilt")],
        "late": "generator late" if workload.report.is_generators else "users in use",
        "limits": [
            {"percent": row.percent, "ms": round(1e3 * row.limit_s, 6)}
            for row in criteria
            if row.limit_s is not None
        ],
        "curve": data.curve,
        "otherCurve": data.other_curve,
        "histogram": {
            "log": data.histogram.is_log,
            "edges": data.histogram.edges,
            "ok": data.histogram.ok,
            "failed": data.histogram.failed,
        },
        "percentiles": _percentiles(workload.report.main_times),
        "intervals": _intervals(workload.report.main_times),
        "staircase": to_json(workload.report.staircase),
        "lagLimit": 1e3 * workload.lag_limit_s,
        **{
            key: one
            for part in workload.parts.values()
            for key, one in part.payload(workload.number).items()
        },
    }


def _percentiles(times: TimeFigures) -> dict[str, float]:
    """Return the percentiles that the histogram marks, in milliseconds by name.

    Unknown ones are left out.
    """
    known = {name: times.percentile(name) for name in ("p50", "p90", "p95", "p99")}
    return {name: round(1e3 * value, 4) for name, value in known.items() if value is not None}


def _intervals(times: TimeFigures) -> list[list[Any]]:
    found = []
    for key, share in _CURVE_KEYS:
        value, interval = times.percentile(key), times.ci.get(key)
        if value is not None and times.count * (1 - share) >= _BEYOND:
            bounds = None
            # without upper bound there is no bar to shade
            if interval and interval[1] is not None:
                bounds = [round(1e3 * (bound or 0.0), 4) for bound in interval]
            found.append([share, bounds, round(1e3 * value, 4)])
    return found


def _end_s(workload: WorkloadFacts) -> float:
    matrix = workload.main_matrix
    reached = max(workload.elapsed_s, (matrix.used - 1) * matrix.width_s)
    return round(max(reached, 1e-3), 3)


def _asked_points(workload: WorkloadFacts, end_s: float) -> list[list[float]]:
    points = [
        [round(float(at), 3), round(float(value), 4)] for at, value in workload.list_of("asked")
    ]
    # one point is a rate that does not change
    if points and points[-1][0] < end_s and (len(points) == 1 or not workload.report.is_open):
        points.append([end_s, points[-1][1]])
    return points


def _load(load: Mapping[str, Any], end_s: float) -> LoadBins:
    bin_s = float(load.get("bin_s") or 0)
    if not bin_s:
        return LoadBins(width_s=1.0, due=[], started=[], ok=[], failed=[], running=[])
    wanted = max(min(_LOAD_BIN_S, end_s / _SHORT_BINS), end_s / _LOAD_BINS)
    together = max(1, math.ceil(round(wanted / bin_s, 6)))
    width_s = together * bin_s
    counts = {
        name: _sums(load.get(name) or (), together)
        for name in ("starts", "ends", "failures", "running")
    }
    last = max(1, math.ceil(end_s / width_s))
    per_s = {name: [_rate(one, width_s) for one in line[:last]] for name, line in counts.items()}
    pairs = zip(counts["ends"], counts["failures"], strict=False)
    return LoadBins(
        width_s=width_s,
        due=_due(load, last, width_s),
        started=per_s["starts"],
        ok=[_rate(ended - failed, width_s) for ended, failed in pairs][:last],
        failed=per_s["failures"],
        running=[round(one / together, 3) for one in counts["running"][:last]],
    )


def _due(load: Mapping[str, Any], bins: int, width_s: float) -> list[float]:
    """Return the due arrivals per second in each of `bins` bins of `width_s` seconds.

    Computed from the timeline's bins, which have another width; zeros if it has none.
    """
    counts, due_bin_s = load.get("due") or (), float(load.get("due_bin_s") or 0)
    if not counts or not due_bin_s:
        return [0.0] * bins
    found = []
    for number in range(bins):
        first = int(number * width_s / due_bin_s)
        end = max(first + 1, round((number + 1) * width_s / due_bin_s))
        within = counts[first:end]
        found.append(_rate(sum(within), due_bin_s * (end - first)))
    return found


def _rate(count: float, width_s: float) -> float:
    return round(count / width_s, 3)


def _sums(line: Sequence[float], together: int) -> list[float]:
    return [sum(line[at : at + together]) for at in range(0, len(line), together)]
