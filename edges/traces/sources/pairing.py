"""Pairs start and stop events to spans, in any order and with duplicates.

OSProfiler and tools based on it write an event when work starts and another when it stops, with
the same id. Services on other hosts may write late, twice, or never.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from osbench.edges.traces.model.spans import (
    LATEST_S,
    LOST_START,
    LOST_STOP,
    STEPPED,
    Span,
    SpanOrigin,
    Trace,
    span_key,
    trace_key,
)
from osbench.edges.traces.sources.attributes import SpanAttributes, of_osprofiler
from osbench.edges.traces.sources.sanitizing import sanitize_span, sanitize_text

START, STOP = "-start", "-stop"


class SpanEvent(NamedTuple):
    """The start or the stop of a span, as OSProfiler writes it: ids, name, time, `info`."""

    #: Ids as written.
    trace_id: str
    span_id: str
    parent_id: str
    #: The span's whole name, without `-start` or `-stop`.
    name: str
    is_stop: bool
    #: Microseconds since 1970 by the host's clock.
    at_us: int
    service: str
    host: str
    info: Mapping[str, Any]
    #: Duration of the span, nanoseconds, if a stop has it; else None.
    duration_ns: int | None = None
    #: Project and service as written; "" if they are not known separately.
    written: tuple[str, str] = ("", "")


def event_of(written: Mapping[str, Any]) -> SpanEvent:
    """Parse an event in the form in which OSProfiler's drivers store it.

    Raises ValueError if it is malformed.
    """
    try:
        name: str = written["name"]
        info = written.get("info") or {}
        ids = (written["base_id"], written["trace_id"], written["parent_id"])
        if not all(isinstance(one, str) for one in ids):
            raise ValueError("an event whose ids are not text")
        owner = (str(written.get("project") or ""), str(written.get("service") or ""))
        return SpanEvent(
            *ids,
            *split_name(name),
            instant_us(written["timestamp"]),
            service_name(*owner),
            str(info.get("host") or ""),
            info,
            None,
            owner,
        )
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("malformed event") from None


def split_name(name: str) -> tuple[str, bool]:
    """Return the name of a span, and whether this is its stop, from the name of an event.

    Raises ValueError if the name ends neither with -start nor with -stop.
    """
    if name.endswith(START):
        return name[: -len(START)], False
    if name.endswith(STOP):
        return name[: -len(STOP)], True
    raise ValueError("an event that is neither a start nor a stop")


@lru_cache(maxsize=1024)
def service_name(project: str, service: str) -> str:
    """Return the name of a service: `project/service`.

    Returns only the service if it begins with the project, and only the other if one is "".
    """
    if project and service:
        return service if service.startswith(project) else f"{project}/{service}"
    return service or project


def instant_us(text: str) -> int:
    """Return microseconds since 1970 of a time such as `2020-02-27T08:04:25.789433`.

    UTC unless the time ends with another offset. Raises ValueError if it is malformed, before 1970,
    or after the year 2242.
    """
    rest = text[19:]
    # OSProfiler's format
    if len(rest) == 7 and rest[1:].isdecimal():
        return _second(text[:19]) * 1_000_000 + int(rest[1:])
    found = _REST.match(rest)
    if found is None:
        raise ValueError("a time of another form")
    ahead_s = 0
    if found["hours"]:
        ahead_s = int(found["hours"]) * 3600 + int(found["sign"] + found["minutes"]) * 60
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    return (_second(text[:19]) - ahead_s) * 1_000_000 + int(fraction)


#: The rest after the second: a fraction, and `Z` or an offset.
_REST = re.compile(
    r"(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:Z|(?P<hours>(?P<sign>[+-])[0-9]{2}):?(?P<minutes>[0-9]{2}))?\Z"
)
#: Position and number of digits of year, month, day, hour, minute and second.
_PARTS = ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2))


@lru_cache(maxsize=4096)
def _second(text: str) -> int:
    if len(text) != 19 or text[4::3][:4].strip("-T :"):
        raise ValueError("a time of another form")
    second = calendar.timegm(tuple(int(text[at : at + n]) for at, n in _PARTS))
    if not 0 <= second < LATEST_S:
        raise ValueError("time out of range")
    return second


def pair(events: Iterable[SpanEvent], *, everything: bool = False) -> dict[str, Trace]:
    """Pair events to spans; return the traces by `trace_key` of their id, spans by start and id.

    The order of the events does not matter: of several starts of a span the first counts, of
    several stops the last. A span gets a mark if it has no stop, if it has no start and its stop no
    duration, or if its duration is negative. `everything` keeps arguments, parameters and queries.
    """
    by_trace: dict[str, list[SpanEvent]] = {}
    for event in events:
        by_trace.setdefault(event.trace_id, []).append(event)
    groups: dict[str, list[SpanEvent]] = {}
    for written, group in by_trace.items():
        groups.setdefault(sanitize_text(trace_key(written)), []).extend(group)
    return {trace_id: _trace(trace_id, group, everything) for trace_id, group in groups.items()}


def _trace(trace_id: str, events: Iterable[SpanEvent], everything: bool) -> Trace:
    starts: dict[str, SpanEvent] = {}
    stops: dict[str, SpanEvent] = {}
    count = 0
    for event in events:
        count += 1
        known = stops if event.is_stop else starts
        other = known.setdefault(event.span_id, event)
        if other is not event and (_order(event) < _order(other)) != event.is_stop:
            known[event.span_id] = event
    spans = [_span(start, stops.get(name), everything) for name, start in starts.items()]
    spans += [_span(None, stop, everything) for name, stop in stops.items() if name not in starts]
    spans.sort(key=_place)
    return Trace(
        trace_id=trace_id,
        spans=tuple(spans),
        duplicates=count - len(starts) - len(stops),
        origins=_origins(starts | {n: stop for n, stop in stops.items() if n not in starts}),
    )


def _origins(events: Mapping[str, SpanEvent]) -> dict[str, SpanOrigin]:
    return {
        sanitize_text(span_key(name)): SpanOrigin(
            *map(sanitize_text, (*event.written, name, event.parent_id))
        )
        for name, event in events.items()
        if any(event.written)
    }


def _order(event: SpanEvent) -> tuple[Any, ...]:
    # a total order, so that of two events at the same time always the same one is chosen
    return event[5], event[3], event[2], event[6], event[7], _repr(event[8]), event[9] or 0


def _repr(info: Mapping[str, Any]) -> str:
    try:
        return repr(info)
    except RecursionError:
        return ""


def _place(span: Span) -> tuple[int, str]:
    return span.start_ns, span.span_id


def _span(start: SpanEvent | None, stop: SpanEvent | None, everything: bool) -> Span:
    event = start or stop
    assert event is not None
    duration = 0
    marks = 0
    begin = event.at_us * 1000
    if start is None:
        assert stop is not None
        duration = stop.duration_ns or 0
        begin -= duration
        marks = 0 if stop.duration_ns is not None else LOST_START
    elif stop is None:
        marks = LOST_STOP
    elif stop.duration_ns is not None:
        duration = stop.duration_ns
    else:
        duration = (stop.at_us - start.at_us) * 1000
    if duration < 0:
        duration, marks = 0, STEPPED
    kept = _attributes(start, stop, everything)
    return sanitize_span(
        Span(
            span_key(event.span_id),
            "" if event.parent_id == event.trace_id else span_key(event.parent_id),
            event.name,
            event.service,
            event.host,
            begin,
            duration,
            kept.detail,
            "",
            kept.error,
            marks,
            kept.attributes,
        )
    )


#: Suffix of the name of a value if the stop has another value under that name.
_BEFORE = " (start)"


def _joined_info(
    first: Mapping[str, Any], last: Mapping[str, Any], everything: bool
) -> dict[str, Any]:
    """Return the members of a start's `info` (`first`) and its stop's (`last`) in a new dict.

    Of two values under one name the stop's is taken. With `everything` a different value of the
    start is kept as "NAME (start)".
    """
    info = {**first, **last}
    if everything:
        for name in first.keys() & last.keys():
            if first[name] != last[name]:
                info[f"{name}{_BEFORE}"] = first[name]
    return info


#: Mappings of which both events of a span may contain a part.
_SHARED = ("db", "function", "request", "requests")


def _attributes(
    start: SpanEvent | None, stop: SpanEvent | None, everything: bool
) -> SpanAttributes:
    first: Mapping[str, Any] = start.info if start is not None else {}
    last: Mapping[str, Any] = stop.info if stop is not None else {}
    info = _joined_info(first, last, everything)
    for name in _SHARED:
        if name in last and isinstance(first.get(name), dict) and isinstance(last[name], dict):
            info[name] = _joined_info(first[name], last[name], everything)
            info.pop(f"{name}{_BEFORE}", None)
    try:
        return of_osprofiler(info, everything=everything)
    except RecursionError:
        return SpanAttributes()
