"""Exporter `openmetrics`: counts and durations as text that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest

from osbench.plugin import exporter

#: Upper bounds of the buckets of a histogram, seconds.
BOUNDS = (*(step * 10.0**power for power in range(-4, 3) for step in (1, 2, 5)), 1000.0)

_LABELS = ("workload", "name", "scenario", "subtask")
_HISTOGRAMS = (
    ("osbench_service_seconds", "service", "Time from start to end of iterations."),
    ("osbench_response_seconds", "response", "Time from the scheduled time to the end."),
    ("osbench_start_lag_seconds", "start_lag", "Time from the scheduled time to the start."),
)


class OpenMetrics(exporter.Exporter):
    """Writes osbench.prom: counts of iterations by state, and durations as histograms.

    The text is OpenMetrics, as the endpoint of `run --metrics` gives it. With `timestamps` each
    value has the end of the run as its time, as `promtool tsdb create-blocks-from openmetrics`
    wants it; the textfile collector of Prometheus' node exporter wants none.
    """

    NAME: ClassVar[str] = "openmetrics"
    FILE: ClassVar[str] = "osbench.prom"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "timestamps": {
                "type": "boolean",
                "default": False,
                "description": "whether values have a time",
            }
        },
        "additionalProperties": False,
    }

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the metrics of the run to `path` as OpenMetrics text."""
        at = run.at if self.config.get("timestamps") else None
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(run, at))
        path.write_bytes(generate_latest(registry))  # type: ignore[no-untyped-call]


class _Families:
    """The metrics of one snapshot of a run, as a collector that prometheus-client can register.

    `at`: timestamp of each value, seconds since 1970; None for none.
    """

    def __init__(self, snapshot: exporter.RunSnapshot, at: float | None) -> None:
        self._snapshot = snapshot
        self._at = at

    def collect(self) -> Iterator[Metric]:
        """Return all metrics of the snapshot; called by prometheus-client."""
        return families(self._snapshot, self._at)


def families(snapshot: exporter.RunSnapshot, at: float | None = None) -> Iterator[Metric]:
    """Yield the metrics of a run: ids, iterations, errors, SLA, durations; exit code if it ended.

    One metric of each name, for all workloads; an unknown plan has the value 0. `at`:
    timestamp of each value, seconds since 1970; None: no timestamps.
    """
    summary = snapshot.summary
    about = InfoMetricFamily("osbench_run", "The run.")
    about.add_metric((), {"run_id": summary["run_id"], "task": summary["task"]}, timestamp=at)
    yield about
    labels = [_labels(number, one) for number, one in enumerate(summary["workloads"])]
    yield from _iterations(summary["workloads"], labels, at)
    yield from _criteria(summary["workloads"], labels, at)
    durations = snapshot.durations()
    for name, kind, text in _HISTOGRAMS:
        family = HistogramMetricFamily(name, text, labels=_LABELS)
        for place, found in zip(labels, durations, strict=True):
            family.add_metric(place, _buckets(found[kind]), found[kind].sum_s, timestamp=at)
        yield family
    if summary.get("exit_code") is not None:
        code = GaugeMetricFamily("osbench_exit_code", "Exit code of the run.")
        code.add_metric((), summary["exit_code"], timestamp=at)
        yield code


def _labels(number: int, workload: Mapping[str, Any]) -> tuple[str, ...]:
    name = workload["name"]
    return (str(number), name, workload.get("scenario", name), workload["subtask"])


def _iterations(
    workloads: Sequence[Mapping[str, Any]], labels: Sequence[tuple[str, ...]], at: float | None
) -> Iterator[Metric]:
    counts = CounterMetricFamily(
        "osbench_iterations",
        "Iterations by the state in which they ended.",
        labels=(*_LABELS, "state"),
    )
    planned = GaugeMetricFamily(
        "osbench_planned_iterations", "Iterations in the plan.", labels=_LABELS
    )
    errors = CounterMetricFamily(
        "osbench_errors", "Failed iterations by type of error.", labels=(*_LABELS, "type")
    )
    for place, workload in zip(labels, workloads, strict=True):
        accounting = workload["accounting"]
        for state in exporter.STATES:
            counts.add_metric((*place, state), accounting[state], timestamp=at)
        planned.add_metric(place, accounting["planned"] or 0, timestamp=at)
        for kind, number in _error_types(workload).items():
            errors.add_metric((*place, kind), number, timestamp=at)
    yield from (counts, planned, errors)


def _criteria(
    workloads: Sequence[Mapping[str, Any]], labels: Sequence[tuple[str, ...]], at: float | None
) -> Iterator[Metric]:
    passed = GaugeMetricFamily(
        "osbench_sla_passed",
        "Whether the SLA criterion is met: 1 or 0.",
        labels=(*_LABELS, "criterion"),
    )
    limits = GaugeMetricFamily(
        "osbench_sla_limit",
        "Numbers of the criterion's configuration.",
        labels=(*_LABELS, "criterion", "limit"),
    )
    for place, workload in zip(labels, workloads, strict=True):
        for verdict in workload["sla"]:
            own = (*place, verdict["criterion"])
            passed.add_metric(own, float(verdict["success"]), timestamp=at)
            for name, value in verdict.get("limits", {}).items():
                limits.add_metric((*own, name), value, timestamp=at)
    yield from (passed, limits)


def _error_types(workload: Mapping[str, Any]) -> dict[str, int]:
    """Return failures by type and "(others)", never by message: time series would be unbounded."""
    found: dict[str, int] = {}
    for error in workload["errors"]:
        found[error["type"]] = found.get(error["type"], 0) + error["count"]
    if workload["other_errors"]:
        found["(others)"] = workload["other_errors"]
    return found


def _buckets(durations: exporter.DurationCounts) -> list[tuple[str, float]]:
    """Return (upper bound in seconds, count up to it), cumulative, as prometheus-client needs."""
    counts = [0] * (len(BOUNDS) + 1)
    for upper_ns, count in zip(durations.upper_ns, durations.counts, strict=True):
        counts[bisect_left(BOUNDS, upper_ns / 1e9)] += count
    found: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*map(repr, BOUNDS), "+Inf"), counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
