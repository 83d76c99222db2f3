"""OTLP in JSON, read by OpenTelemetry's own protobuf code."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_IDS = ("traceId", "spanId", "parentSpanId")


def metrics_of(request: str | bytes) -> dict[str, list[Any]]:
    """Data points by name of their metric."""
    found = json_format.Parse(request, ExportMetricsServiceRequest())
    points: dict[str, list[Any]] = {}
    for resource in found.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = getattr(metric, metric.WhichOneof("data"))
                points.setdefault(metric.name, []).extend(kind.data_points)
    return points


def attribute(point: Any, name: str) -> Any:
    """The value of an attribute of a data point."""
    (value,) = [one.value for one in point.attributes if one.key == name]
    return getattr(value, value.WhichOneof("value"))


def states_of(request: str | bytes) -> list[Counter[str]]:
    """By workload: iterations by state."""
    points = metrics_of(request)["osbench.iterations"]
    found = [Counter[str]() for _ in {attribute(one, "osbench.workload") for one in points}]
    for one in points:
        found[attribute(one, "osbench.workload")][attribute(one, "state")] += one.as_int
    return found


def spans_of(requests: Iterable[str | bytes]) -> list[Any]:
    """All spans. Ids of OTLP's JSON are hexadecimal, where protobuf's own mapping has base 64."""
    found: list[Any] = []
    for request in requests:
        document = json.loads(request)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for name in _IDS:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        parsed = json_format.ParseDict(document, ExportTraceServiceRequest())
        for resource in parsed.resource_spans:
            for scope in resource.scope_spans:
                found += scope.spans
    return found
