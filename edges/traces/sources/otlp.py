"""Reads and writes OpenTelemetry's spans in OTLP's JSON, as collectors write it to files.

Format: https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto, and the
JSON mapping of https://opentelemetry.io/docs/specs/otlp/ (ids in hexadecimal). Tempo has ids in
base64, as protobuf's own JSON does.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from osbench.edges.traces.model.spans import (
    LATEST_S,
    LOST_START,
    LOST_STOP,
    STEPPED,
    Span,
    Trace,
    better,
    span_key,
    trace_key,
)
from osbench.edges.traces.sources.attributes import DETAIL, of_opentelemetry
from osbench.edges.traces.sources.details import title
from osbench.edges.traces.sources.sanitizing import sanitize_span, sanitize_text

#: Attribute of exported spans whose start or stop was never recorded.
_LOST = "osbench.lost"
_LOST_MARKS = {"start": LOST_START, "stop": LOST_STOP}
_KINDS = ("", "internal", "server", "client", "producer", "consumer")
_ERROR = (2, "STATUS_CODE_ERROR")
_HEX = frozenset("0123456789abcdef")
#: Exceptions from malformed spans; `int` of an infinite number raises OverflowError.
_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
_VALUES = ("stringValue", "boolValue", "doubleValue")


class OtlpSpans:
    """Traces in parsed export requests of OTLP's JSON, given in memory."""

    def __init__(
        self,
        requests: Sequence[Mapping[str, Any]],
        *,
        everything: bool = False,
        skipped: int = 0,
    ) -> None:
        """`everything` keeps all attributes.

        `skipped` is the number of requests that could not be read; malformed spans are added to it.
        """
        self._requests = requests
        self._everything = everything
        #: Requests that could not be read, and malformed spans.
        self.skipped = skipped

    def all(self) -> Iterator[Trace]:
        """Yield every trace, spans sorted by start and id, after all requests are parsed.

        Of duplicate spans the better record is kept (see `better`). Counts malformed spans in
        `skipped`.
        """
        found: dict[str, dict[str, Span]] = {}
        seen: dict[str, int] = {}
        for trace_id, span in self.spans():
            known = found.setdefault(trace_id, {})
            seen[trace_id] = seen.get(trace_id, 0) + 1
            other = known.setdefault(span.span_id, span)
            if other is not span:
                known[span.span_id] = better(span, other)
        for trace_id, known in found.items():
            spans = sorted(known.values(), key=lambda span: (span.start_ns, span.span_id))
            yield Trace(
                trace_id=trace_id, spans=tuple(spans), duplicates=seen[trace_id] - len(known)
            )

    def read(self, wanted: Collection[str]) -> Iterator[Trace]:
        """Yield the traces with these ids (keys as `trace_key` makes them).

        Parses all requests, and counts malformed spans in `skipped`, as `all` does.
        """
        ids = frozenset(wanted)
        return (trace for trace in self.all() if trace.trace_id in ids)

    def spans(self) -> Iterator[tuple[str, Span]]:
        """Yield (trace id, span) for every span, in the order of the requests.

        Counts malformed spans in `skipped`; entries that are not JSON objects are ignored.
        """
        for request in self._requests:
            for group in _list(request.get("resourceSpans")):
                resource = group.get("resource")
                about = _attributes(resource if isinstance(resource, Mapping) else {})
                scopes = _list(group.get("scopeSpans") or group.get("instrumentationLibrarySpans"))
                for written in (span for scope in scopes for span in _list(scope.get("spans"))):
                    try:
                        found = sanitize_span(self._span(written, about))
                        trace_id = sanitize_text(trace_key(_digits(written["traceId"])))
                    except (*_WRONG, RecursionError):
                        self.skipped += 1
                    else:
                        yield trace_id, found

    def _span(self, written: Mapping[str, Any], about: Mapping[str, Any]) -> Span:
        own = _attributes(written)
        start, end = (
            _timestamp(written["startTimeUnixNano"]),
            _timestamp(written.get("endTimeUnixNano")),
        )
        marks = LOST_STOP if not end else STEPPED if end < start else 0
        marks |= _LOST_MARKS.get(str(own.get(_LOST)), 0)
        kept = of_opentelemetry(own, everything=self._everything)
        error = kept.error
        status = written.get("status")
        if not error and isinstance(status, Mapping) and status.get("code") in _ERROR:
            error = "error"
        parent = span_key(_digits(written.get("parentSpanId") or ""))
        return Span(
            span_key(_digits(written["spanId"])),
            "" if not parent.strip("0") else parent,
            title(str(written["name"])),
            _service(about),
            str(about.get("host.name") or ""),
            start,
            max(end - start, 0) if end else 0,
            kept.detail,
            _kind(written.get("kind")),
            error,
            marks,
            kept.attributes,
        )


def export_requests(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the export requests in a document: itself, or inside a response of Tempo or Jaeger.

    A response without spans gives an empty list. Raises ValueError for a document of another kind.
    """
    for envelope in ("result", "trace"):
        inner = document.get(envelope)
        if isinstance(inner, Mapping):
            return export_requests(inner)
    if isinstance(document.get("batches"), list):
        return [{"resourceSpans": document["batches"]}]
    if isinstance(document.get("resourceSpans"), list):
        return [document]
    if document.keys() - {"metrics", "status", "message"}:
        raise ValueError("not a trace")
    return []


def to_otlp(traces: Iterable[Trace]) -> dict[str, Any]:
    """Return traces as one export request of OTLP's JSON, spans in groups by service and host.

    Spans whose start or stop was lost get an attribute that says so. Ids in another form than W3C's
    are hashed.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for trace in traces:
        for span in trace.spans:
            groups.setdefault((span.service, span.host), []).append(
                _span_document(trace.trace_id, span)
            )
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs({"service.name": service, "host.name": host})},
                "scopeSpans": [{"scope": {"name": "osbench"}, "spans": spans}],
            }
            for (service, host), spans in groups.items()
        ]
    }


def _span_document(trace_id: str, span: Span) -> dict[str, Any]:
    attributes = {**span.attributes, DETAIL: span.detail}
    if span.error:
        attributes["error.type"] = attributes.get("error.type") or span.error
    for lost, mark in _LOST_MARKS.items():
        if span.marks & mark:
            attributes[_LOST] = lost
    return {
        "traceId": _id(trace_id, 32),
        "spanId": _id(span.span_id, 16),
        "parentSpanId": _id(span.parent_id, 16) if span.parent_id else "",
        "name": span.name,
        "kind": _KINDS.index(span.kind) if span.kind in _KINDS else 0,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs(attributes),
        "status": {"code": 2} if span.error else {},
    }


def _id(text: str, digits: int) -> str:
    """Return `text` if it is an id of `digits` hexadecimal digits, not all 0; else a hash of it."""
    if len(text) == digits and _HEX.issuperset(text) and text.strip("0"):
        return text
    return blake2b(text.encode("utf-8", "replace"), digest_size=digits // 2).hexdigest()


def _digits(written: str) -> str:
    """Return an id in hexadecimal if it is in base64 (ends with `=`); else unchanged.

    Raises ValueError for invalid base64.
    """
    return base64.b64decode(written, validate=True).hex() if written.endswith("=") else written


def _timestamp(written: Any) -> int:
    """Return a time, nanoseconds since 1970, from a number or string; 0 for none ("" or None).

    Raises ValueError if it is out of range or malformed, TypeError for other types.
    """
    found = int(written or 0)
    if not 0 <= found < LATEST_S * 10**9:
        raise ValueError("time out of range")
    return found


def _pairs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": _any_value(value)}
        for name, value in values.items()
        if value is not None and value != ""
    ]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def _attributes(owner: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in _list(owner.get("attributes")):
        value = pair.get("value")
        if not isinstance(value, Mapping):
            continue
        for name in _VALUES:
            if name in value:
                found[str(pair.get("key"))] = value[name]
        with suppress(*_WRONG):
            found[str(pair.get("key"))] = int(value["intValue"])
    return found


def _service(about: Mapping[str, Any]) -> str:
    namespace, name = about.get("service.namespace"), str(about.get("service.name") or "")
    return f"{namespace}/{name}" if namespace else name


def _kind(written: Any) -> str:
    if isinstance(written, str):
        word = written.removeprefix("SPAN_KIND_").lower()
        return word if word in _KINDS else ""
    return _KINDS[written] if isinstance(written, int) and 0 < written < len(_KINDS) else ""


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
