"""Spans and traces, for both OSProfiler and OpenTelemetry."""

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
    """A timed piece of work of a service, such as a request or a statement, from any source.

    It is a tuple, because a run may have millions.
    """

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
        """Time at which the span ended, nanoseconds since 1970 by the clock of its host."""
        return self.start_ns + self.duration_ns


def joined_words(service: str, name: str, detail: str) -> str:
    """Return service, name and detail of a span as text: "items SELECT * FROM items".

    Empty parts are left out.
    """
    return " ".join(part for part in (service, name, detail_after(name, detail)) if part)


def detail_after(name: str, detail: str) -> str:
    """Return a detail without the name of its span at the begin; instrumentations repeat it."""
    words = f"{detail} "
    begin = f"{name} ".lower()
    return detail[len(begin) :] if name and words.lower().startswith(begin) else detail


class SpanOrigin(NamedTuple):
    """Project, service and ids of a span as OSProfiler wrote them: ids are complete UUIDs."""

    project: str
    service: str
    span_id: str
    parent_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """The spans with one trace id, ordered by start and id.

    Also the number of duplicates, and ids as OSProfiler wrote them.
    """

    #: 32 hexadecimal digits, or an id in another form.
    trace_id: str
    spans: tuple[Span, ...]
    #: Number of duplicate events or records, which are not in `spans`.
    duplicates: int = 0
    #: By span id; empty if another tool than OSProfiler wrote the spans.
    origins: Mapping[str, SpanOrigin] = field(default_factory=dict, compare=False)

    @property
    def lost_stops(self) -> int:
        """Number of spans whose stop was never recorded, so that their duration is unknown."""
        return sum(1 for span in self.spans if span.marks & LOST_STOP)

    @property
    def is_whole(self) -> bool:
        """Return whether there are spans, all with start and stop, and no parent is missing."""
        known = {span.span_id for span in self.spans}
        return bool(self.spans) and not any(
            span.marks & (LOST_STOP | LOST_START)
            or (span.parent_id and span.parent_id not in known)
            for span in self.spans
        )


def better(one: Span, other: Span) -> Span:
    """Return the better of two records of one span; their order does not matter.

    A record with start and stop is better, then a record without marks, then the longer one.
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
    """Return a trace id in the form used as key: lower case, without dashes.

    The ids of OSProfiler (UUIDs) and OpenTelemetry are equal in this form.
    """
    return text.replace("-", "").lower()


def is_trace_key(text: str) -> bool:
    """Return whether this is a trace id of 32 lower-case hexadecimal digits.

    Such an id is safe as part of a key in a store.
    """
    return bool(_TRACE.match(text))


def span_key(text: str) -> str:
    """Return a span id in the form used as key: lower case, without dashes.

    Of a UUID only the last 16 digits are returned, as OpenTelemetry has the id.
    """
    plain = text.replace("-", "").lower()
    return plain[16:] if len(plain) == 32 and _HEX.issuperset(plain) else plain


def uuid_form(trace_id: str) -> str:
    """Return a trace id in the form of a UUID, as OSProfiler writes it; other ids unchanged."""
    if not is_trace_key(trace_id):
        return trace_id
    parts = (trace_id[:8], trace_id[8:12], trace_id[12:16], trace_id[16:20], trace_id[20:])
    return "-".join(parts)
