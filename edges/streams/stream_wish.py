"""The key `stream` of a request, as a mapping: the kind of its events, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from osbench.common.config.durations import seconds
from osbench.common.plugin.signature import near

#: Kinds of events; `BYTES` stands for none.
BYTES = "bytes"
KINDS = ("sse", "lines", "json", "chunks", BYTES)
#: Most events that `max_events` may name.
_MOST_EVENTS = 10**9
#: Longest `read_for`, seconds: 30 years; its nanoseconds fit into 64 bits.
_MOST_S = 10**9
_KEYS = ("events", "read_for", "until", "max_events")


@dataclass(frozen=True, kw_only=True)
class StreamWish:
    """Way to read the body of a response, event by event; made from the mapping of a task."""

    #: One of `KINDS`, but "" if only bytes are counted.
    events: str = ""
    #: Seconds from the head of the response after which reading ends well; 0: at its end only.
    read_for_s: float = 0.0
    #: Text of the last event that is read; "" for none.
    until: str = ""
    #: Events after which reading ends well; 0 for no limit.
    max_events: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> StreamWish:
        """Return the wish of a mapping with the keys events, read_for, until and max_events.

        Seconds may be a text such as "2s". Raises TypeError for an unknown key or a wrong value.
        """
        problem = next(problems(given), "")
        if problem:
            raise TypeError(problem)
        return _wish(*(given.get(key) for key in _KEYS))


# 1 and 1.0 are two texts
@lru_cache(256, typed=True)
def _wish(events: str | None, read_for: Any, until: Any, max_events: int | None) -> StreamWish:
    return StreamWish(
        events="" if events in (None, BYTES) else events,
        read_for_s=_seconds(read_for) or 0.0,
        until="" if until is None else str(until),
        max_events=max_events or 0,
    )


def _seconds(value: Any) -> float | None:
    """Return a duration in seconds; None if it is not one, or is 0 or less."""
    if isinstance(value, str):
        try:
            value = seconds(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < float("inf") else None


def problems(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in the mapping `stream` of a request."""
    for key in given:
        if key not in _KEYS:
            yield f"stream has no key {key!r}, only {', '.join(_KEYS)}{near(str(key), _KEYS)}"
    events, until, most = given.get("events"), given.get("until"), given.get("max_events")
    if events is not None and events not in KINDS:
        yield f"events of stream must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {events!r}"
    if "read_for" in given and not 0 < (_seconds(given["read_for"]) or 0) <= _MOST_S:
        yield (
            f"read_for of stream must be seconds above 0, at most {_MOST_S:,}, or a duration such"
            f" as 2s; got {given['read_for']!r}"
        )
    if until is not None and (isinstance(until, Mapping | list | bool) or not str(until)):
        yield f"until of stream must be a text of the last event, got {until!r}"
    if most is not None and (type(most) is not int or not 1 <= most <= _MOST_EVENTS):
        yield f"max_events of stream must be an integer from 1 to {_MOST_EVENTS:,}, got {most!r}"
    if events in (None, BYTES):
        for key in ("until", "max_events"):
            if key in given:
                yield f"{key} of stream needs events: sse, lines, json or chunks"
    if events == "chunks" and until is not None:
        yield "until of stream needs events whose text is read: sse, lines or json, not chunks"


def step_problems(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in the mapping `stream` of a step of a flow.

    Also if other keys of the step need its body, or never let `read_for` end the stream. Nothing if
    `stream` is not a mapping.
    """
    given = step.get("stream")
    if not isinstance(given, Mapping):
        return
    yield from problems(given)
    if step.get("method") == "HEAD":
        yield "the response to HEAD has no body to stream: leave out stream, or method"
    for key in ("check", "verify", "save"):
        wanted = step.get(key)
        parts = wanted if isinstance(wanted, Mapping) else {}
        for part in parts.values() if key == "save" else parts:
            if not str(part).lower().startswith(("header ", "cookie ")):
                yield (
                    f"the body of a stream is not kept, and {part!r} of {key} is not there;"
                    " until: TEXT of stream looks for a text in its events"
                )
    timeout, read_for_s = _seconds(step.get("timeout")), _seconds(given.get("read_for"))
    if timeout is not None and read_for_s is not None and timeout <= read_for_s:
        yield (
            f"timeout ({timeout:g} s) ends the stream as a failure before read_for"
            f" ({read_for_s:g} s) ends it well: give a longer timeout"
        )
