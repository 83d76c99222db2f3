"""Parses the spans of a run from OTLP's export requests in protobuf, as SDKs send them.

Format: https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto. Ids have 16 and
8 bytes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from osbench.common.text.plain_paths import short_text
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.model.spans import LATEST_S, LOST_STOP, STEPPED, Span
from osbench.edges.traces.sources.attributes import of_opentelemetry
from osbench.edges.traces.sources.details import title
from osbench.edges.traces.sources.sanitizing import sanitize_span

_KINDS = ("", "internal", "server", "client", "producer", "consumer")
_ERROR = 2
_NO_PARENT = bytes(8)


@dataclass(kw_only=True)
class RequestSpans:
    """Counts of those spans of one request that `run_spans` does not yield.

    `strangers`: spans whose trace id is not of the run. `malformed`: spans with an invalid id or
    time.
    """

    strangers: int = 0
    malformed: int = 0


def run_spans(
    body: bytes, mark: TraceMark, counts: RequestSpans, *, everything: bool
) -> Iterator[tuple[bytes, Span]]:
    """Yield (trace id of 16 bytes, span) for each span of the run in a request.

    Spans of other runs and malformed spans are added to `counts`. `mark` recognizes trace ids of
    the run; `everything` keeps all attributes. Raises ValueError if the body is not an export
    request.
    """
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise ValueError(f"expected an ExportTraceServiceRequest: {error}") from None
    known: dict[bytes, bool] = {}
    for group in request.resource_spans:
        about: Mapping[str, Any] | None = None
        service = host = ""
        for scope in group.scope_spans:
            for written in scope.spans:
                trace_id = written.trace_id
                own = known.get(trace_id)
                if own is None:
                    own = known[trace_id] = mark.is_on(trace_id)
                if not own:
                    counts.strangers += 1
                    continue
                if about is None:
                    about = _attributes(group.resource.attributes)
                    service, host = service_of(about), short_text(str(about.get("host.name") or ""))
                try:
                    yield trace_id, _span(written, service, host, everything=everything)
                except (ValueError, RecursionError):
                    counts.malformed += 1


def service_of(about: Mapping[str, Any]) -> str:
    """Return the service of a resource's attributes, as NAMESPACE/NAME or NAME; "" if unknown."""
    namespace, name = about.get("service.namespace"), str(about.get("service.name") or "")
    return short_text(f"{namespace}/{name}" if namespace else name)


def _span(written: Any, service: str, host: str, *, everything: bool) -> Span:
    span_id, parent = written.span_id, written.parent_span_id
    start, end = written.start_time_unix_nano, written.end_time_unix_nano
    if len(span_id) != 8 or span_id == _NO_PARENT or len(parent) not in (0, 8):
        raise ValueError("malformed id")
    if not 0 < start < LATEST_S * 10**9 or end >= LATEST_S * 10**9:
        raise ValueError("time out of range")
    kept = of_opentelemetry(_attributes(written.attributes), everything=everything)
    kind = written.kind
    return sanitize_span(
        Span(
            span_id.hex(),
            parent.hex() if parent != _NO_PARENT else "",
            title(written.name),
            service,
            host,
            start,
            max(end - start, 0) if end else 0,
            kept.detail,
            _KINDS[kind] if 0 < kind < len(_KINDS) else "",
            kept.error or ("error" if written.status.code == _ERROR else ""),
            LOST_STOP if not end else STEPPED if end < start else 0,
            kept.attributes,
        )
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        kind = value.WhichOneof("value")
        # lists and mappings are not analysed, as in `otlp`
        if kind in ("string_value", "int_value", "bool_value", "double_value"):
            found[pair.key] = getattr(value, kind)
    return found
