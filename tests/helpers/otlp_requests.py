"""Export requests of OTLP as SDKs send them, in protobuf and JSON."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

BEGIN_NS = 1_775_000_000_000_000_000


def request_of(
    traces: Iterable[bytes], *, service: str = "shop", each: int = 1, **attributes: Any
) -> ExportTraceServiceRequest:
    """A request with `each` spans of each trace."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    _set(group.resource, {"service.name": service, "host.name": "h1"})
    spans = group.scope_spans.add().spans
    for trace in traces:
        for number in range(each):
            span = spans.add()
            span.trace_id, span.span_id = trace, os.urandom(8)
            span.parent_span_id = b"\x01" * 8
            span.name, span.kind = "GET /items", 2
            span.start_time_unix_nano = BEGIN_NS + number
            span.end_time_unix_nano = BEGIN_NS + number + 5_000_000
            _set(
                span, attributes or {"http.request.method": "GET", "url.path": "/items/17?a=s3cret"}
            )
    return request


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """The request in OTLP's JSON, whose ids are hexadecimal."""
    document = json_format.MessageToDict(request)
    for group in document.get("resourceSpans", []):
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = base64.b64decode(span.get(name, "")).hex()
    return json.dumps(document).encode()


def _set(owner: Any, attributes: Mapping[str, Any]) -> None:
    for key, value in attributes.items():
        pair = owner.attributes.add()
        pair.key = key
        kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
        setattr(pair.value, kinds[type(value)], value)
