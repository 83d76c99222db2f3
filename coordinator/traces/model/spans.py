"""Spans and traces, in a model for both OSProfiler and OpenTelemetry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Marks of a span, which may be combined. Its stop, or its start, was never recorded.
LOST_STOP, LOST_START = 1, 2
#: Its clock was set back meanwhile, so that its end would be before its start.
STEPPED = 4

#: Upper limit of times, seconds since 1970 (the year 2242): sums in nanoseconds fit 64 bits.
LATEST_S = 2**33

_HEX = frozenset("0123456789abcdef")
_TRACE = re.compile(r"[0-9a-f]{32}\Z")
_NOTHING: Mapping[str, Any] = {}


class Span(NamedTuple):
    """A timed piece of work. A tuple, because a run may have millions."""

    #: 16 hexadecimal digits, unique within the trace, if the id was a UUID or W3C's.
    span_id: str
    #: Id of the span around it; "" for a root.
    parent_id: str
    name: str
    #: Service that did the work, such as `zaqar/api`.
    service: str
    #: Host whose clock was read; "" if not known.
    host: str
    #: Nanoseconds since 1970 by that clock; nanoseconds.
    start_ns: int
    duration_ns: int
    #: Description of the work, without values: a statement, a path, a function.
    detail: str = ""
    #: OpenTelemetry's kind in lower case: server, client, producer, consumer, internal or "".
    kind: str = ""
    #: Type of its error, or "".
    error: str = ""
    #: Sum of marks.
    marks: int = 0
    #: Further attributes, as far as they are kept.
    attributes: Mapping[str, Any] = _NOTHING

    @property
    def end_ns(self) -> int:
        """End of the span, by the same clock."""
        return self.start_ns + self.duration_ns


class SpanOrigin(NamedTuple):
    """Ids and names of a span as OSProfiler wrote them: complete ids, its project."""

    project: str
    service: str
    span_id: str
    parent_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """The spans of one trace, ordered by start and id."""

    #: 32 hexadecimal digits, or an id in another form.
    trace_id: str
    spans: tuple[Span, ...]
    #: Number of duplicate events.
    duplicates: int = 0
    #: By span id; empty if another tool than OSProfiler wrote the spans.
    origins: Mapping[str, SpanOrigin] = field(default_factory=dict, compare=False)

    @property
    def lost_stops(self) -> int:
        """Number of spans whose stop was not recorded."""
        return sum(1 for span in self.spans if span.marks & LOST_STOP)

    @property
    def is_whole(self) -> bool:
        """Return whether every span has start and stop, and no parent is missing."""
        known = {span.span_id for span in self.spans}
        return bool(self.spans) and not any(
            span.marks & (LOST_STOP | LOST_START)
            or (span.parent_id and span.parent_id not in known)
            for span in self.spans
        )


def better(one: Span, other: Span) -> Span:
    """Return the better of two records of a span, independent of their order.

    A record with start and stop is better, then a longer one.
    """
    return min(one, other, key=_worth)


def _worth(span: Span) -> tuple[bool, bool, int, str]:
    return (
        bool(span.marks & (LOST_STOP | LOST_START)),
        bool(span.marks),
        -span.duration_ns,
        repr(span),
    )


def trace_key(text: str) -> str:
    """Return a trace id without dashes, in lower case: OSProfiler and OpenTelemetry agree on it."""
    return text.replace("-", "").lower()


def is_trace_key(text: str) -> bool:
    """Return whether this is an id of 128 bits, which is safe as part of a store's key."""
    return bool(_TRACE.match(text))


def span_key(text: str) -> str:
    """Return a span id in W3C's form: the lower 64 of 128 bits, as OpenTelemetry has it."""
    plain = text.replace("-", "").lower()
    return plain[16:] if len(plain) == 32 and _HEX.issuperset(plain) else plain


def uuid_form(trace_id: str) -> str:
    """Return a trace id as OSProfiler writes it."""
    if not is_trace_key(trace_id):
        return trace_id
    parts = (trace_id[:8], trace_id[8:12], trace_id[12:16], trace_id[16:20], trace_id[20:])
    return "-".join(parts)
