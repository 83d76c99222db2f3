"""A run as OTLP metrics in their JSON form, with exponential histograms.

Format: https://github.com/open-telemetry/opentelemetry-proto, metrics/v1/metrics.proto, and the
JSON mapping of https://opentelemetry.io/docs/specs/otlp/ (64-bit integers are text).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.plugin import exporter

#: Buckets of a factor of two: 2**SCALE, each 2.2 % wide.
SCALE = 5
#: AGGREGATION_TEMPORALITY_CUMULATIVE
_CUMULATIVE = 2

_HISTOGRAMS = (
    ("osbench.iteration.service_time", "service", "time from start to end of iterations"),
    ("osbench.iteration.response_time", "response", "time from the scheduled time to the end"),
    ("osbench.iteration.start_lag", "start_lag", "time from the scheduled time to the start"),
)


def metrics_request(snapshot: exporter.RunSnapshot) -> dict[str, Any]:
    """Return the metrics of a run since t0 as an ExportMetricsServiceRequest in JSON form."""
    summary = snapshot.summary
    about = {
        "service.name": "osbench",
        "service.instance.id": summary["run_id"],
        "osbench.task": summary["task"],
    }
    scope = {"scope": {"name": "osbench"}, "metrics": list(_metrics(snapshot))}
    resource = {"attributes": attributes(about)}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]}


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a mapping of names to strings and integers to a list of OTLP attributes.

    Values of other types become strings.
    """
    return [
        {
            "key": name,
            "value": {"intValue": str(value)}
            if isinstance(value, int)
            else {"stringValue": str(value)},
        }
        for name, value in values.items()
    ]


def _metrics(snapshot: exporter.RunSnapshot) -> Iterator[dict[str, Any]]:
    begun = list(_workload_fields(snapshot))
    counts = [
        {**point, "asInt": str(workload["accounting"][state])}
        | {"attributes": [*point["attributes"], *attributes({"state": state})]}
        for _, workload, point in begun
        for state in exporter.STATES
    ]
    if counts:
        yield {
            "name": "osbench.iterations",
            "description": "iterations by the state in which they ended",
            "unit": "{iteration}",
            "sum": {
                "aggregationTemporality": _CUMULATIVE,
                "isMonotonic": True,
                "dataPoints": counts,
            },
        }
    durations = snapshot.durations()
    for name, kind, text in _HISTOGRAMS:
        points = [
            {**point, **exponential(durations[number][kind])}
            for number, _, point in begun
            if durations[number][kind].count
        ]
        if points:
            histogram = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
            yield {
                "name": name,
                "description": text,
                "unit": "s",
                "exponentialHistogram": histogram,
            }


def _workload_fields(
    snapshot: exporter.RunSnapshot,
) -> Iterator[tuple[int, Mapping[str, Any], dict[str, Any]]]:
    """Yield (number, report, common fields of all its data points) of each workload.

    The fields are attributes, start time (t0; now, if it has not begun) and time of the snapshot.
    """
    now = _nanoseconds(snapshot.at)
    for number, workload in enumerate(snapshot.summary["workloads"]):
        t0_at = snapshot.t0_at[number]
        about = {
            "osbench.workload": number,
            "osbench.name": workload["name"],
            "osbench.scenario": workload.get("scenario", workload["name"]),
            "osbench.subtask": workload["subtask"],
        }
        yield (
            number,
            workload,
            {
                "attributes": attributes(about),
                "startTimeUnixNano": _nanoseconds(t0_at) if t0_at else now,
                "timeUnixNano": now,
            },
        )


def exponential(durations: exporter.DurationCounts) -> dict[str, Any]:
    """Return durations as the fields of an OTLP exponential histogram, in seconds.

    Durations that were counted together go into the bucket of their upper bound.
    """
    zeros = 0
    buckets: Counter[int] = Counter()
    for upper_ns, count in zip(durations.upper_ns, durations.counts, strict=True):
        if upper_ns <= 0:
            zeros += count
        elif count:
            # bucket i holds what is above 2**(i / 2**SCALE) and at most 2**((i + 1) / 2**SCALE)
            buckets[math.ceil(math.log2(upper_ns / 1e9) * 2**SCALE) - 1] += count
    offset = min(buckets, default=0)
    reach = max(buckets, default=offset - 1) - offset + 1
    return {
        "count": str(durations.count),
        "sum": durations.sum_s,
        "scale": SCALE,
        "zeroCount": str(zeros),
        "positive": {
            "offset": offset,
            "bucketCounts": [str(buckets[offset + at]) for at in range(reach)],
        },
    }


def _nanoseconds(seconds: float) -> str:
    return str(int(seconds * 1e9))
