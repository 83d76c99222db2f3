"""Formats of access logs: NCSA combined, HAProxy's HTTP log, and JSON lines.

NCSA: https://httpd.apache.org/docs/2.4/logs.html
HAProxy: section 8.2.3 of its configuration manual
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

_SECOND_US = 1_000_000
#: Cached strings of times: lines come in order of time, more or less.
_MOST_TEXTS = 10_000
#: Bounds of times, seconds since the epoch: 1990 to 2100.
_EARLIEST_S, _LATEST_S = 631_152_000, 4_102_444_800


@dataclass(kw_only=True)
class LogLines:
    """Requests read from lines of a log: element N of the first three lists is of request N."""

    #: Microseconds since the epoch.
    times_us: list[int] = field(default_factory=list)
    #: Method and path without query, with a space between them.
    requests: list[bytes] = field(default_factory=list)
    #: 0 if the line has none: the client went away before a response.
    statuses: list[int] = field(default_factory=list)
    #: Requests that had a query.
    queries: int = 0
    #: Positions of the lines that could not be read, from 0.
    unreadable: list[int] = field(default_factory=list)


class LogFormat(Protocol):
    """A format of access logs, which reads the requests from lines."""

    #: Name for people.
    NAME: str

    def read(self, block: bytes) -> LogLines:
        """Return the requests in a block of complete lines.

        Lines in other formats are listed as unreadable; blank lines are skipped.
        """


class InstantTexts(dict[bytes, int]):
    """Cache of parsed times: bytes of a log -> microseconds since the epoch, -1 if not a time.

    A missing text is parsed and added on access. Emptied before it has more than `_MOST_TEXTS`
    entries.
    """

    def __missing__(self, text: bytes) -> int:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        found = self[text] = _instant_us(text.decode("utf-8", "replace"))
        return found


class PatternFormat:
    """A log format: a regular expression with groups for time, request, query and status."""

    def __init__(self, name: str, pattern: bytes, order: Sequence[int] = (0, 1, 2, 3)) -> None:
        """`name`: for messages. `pattern`: matches one line. `order`: indexes of the groups time,
        request, query and status among the pattern's groups.
        """
        self.NAME = name
        self._pattern = re.compile(pattern, re.M)
        self._order = order
        self._instants = InstantTexts()
        self._statuses = {b"%03d" % code: code for code in range(1000)} | {b"-1": 0}

    def read(self, block: bytes) -> LogLines:
        """Return the requests in a block of complete lines.

        Lines that do not match, or have an invalid time, are listed as unreadable; blank lines are
        skipped.
        """
        found = self._pattern.findall(block)
        if not found:
            return LogLines(unreadable=written_lines(block))
        columns = list(zip(*found, strict=True))
        times, requests, queries, statuses = (columns[at] for at in self._order)
        times_us = list(map(self._instants.__getitem__, times))
        if len(found) != block.count(b"\n") or min(times_us) < 0:
            return self._one_by_one(block)
        return LogLines(
            times_us=times_us,
            requests=list(requests),
            statuses=list(map(self._statuses.__getitem__, statuses)),
            queries=len(queries) - queries.count(b""),
        )

    def _one_by_one(self, block: bytes) -> LogLines:
        lines = LogLines()
        for at, line in enumerate(block.split(b"\n")):
            if not line.strip():
                continue
            match = self._pattern.match(line)
            groups = match.groups() if match is not None else ()
            if not groups or self._instants[groups[self._order[0]]] < 0:
                lines.unreadable.append(at)
                continue
            time, request, query, status = (groups[place] for place in self._order)
            lines.times_us.append(self._instants[time])
            lines.requests.append(request)
            lines.statuses.append(self._statuses[status])
            lines.queries += query != b""
        return lines


# nothing is given back: a line of a hostile client takes linear time. Apache writes \" for a quote
_QUOTED = rb'"(?:[^"\\\n]++|\\.)*+"'
_REQUEST = rb'"([A-Z]++ (?:[^ ?"\\\n]++|\\.)++)(\??)(?:[^"\\\n]++|\\.)*+"'


def combined_format() -> PatternFormat:
    """Return the format of nginx and Apache: common or combined, with or without a virtual host.

    Fields before the time may be quoted, such as X-Forwarded-For.
    """
    start = rb'^(?:[^\["\n]++|' + _QUOTED + rb")*+\[([^\]\n]{1,64}+)\] "
    return PatternFormat(
        "nginx or Apache (combined)", start + _REQUEST + rb" (\d{3})(?![0-9])[^\n]*+$"
    )


def haproxy() -> PatternFormat:
    """Return the format of HAProxy's `option httplog`, with or without a prefix of syslog."""
    # the prefix is bounded: lines of hostile clients take no more than linear time
    start = (
        rb'^[^"\n]{0,400}?\[(\d\d/\w{3}/\d{4}:[\d:.]{1,30}+)\] \S++ \S++ [-+\d/]++ (\d{3}|-1) '
        rb'[^"\n]*+'
    )
    return PatternFormat("HAProxy", start + _REQUEST + rb"[^\n]*+$", (0, 2, 3, 1))


#: Names of fields in JSON, as servers and collectors write them; a dot goes into an object.
FIELDS: Mapping[str, Sequence[str]] = {
    "time": (
        *("time", "timestamp", "@timestamp", "ts", "StartUTC", "start_time", "msec"),
        *("time_iso8601", "time_local"),
    ),
    "method": (
        "method",
        "request_method",
        "request.method",
        "RequestMethod",
        "http.request.method",
    ),
    "path": ("uri", "request_uri", "path", "request.uri", "RequestPath", "url.path", "url"),
    "request": ("request", "request_line"),
    "status": (
        *("status", "response_code", "DownstreamStatus", "status_code"),
        *("http.response.status_code", "response.status"),
    ),
    "took": ("request_time",),
}


class JsonFormat:
    """A log format with a JSON object on each line.

    If an object has `took`, a duration in seconds, its `time` is the end of the request, and the
    start is computed.
    """

    NAME = "JSON lines"

    def __init__(self, fields: Mapping[str, str]) -> None:
        """`fields`: by key of `FIELDS`, the JSON field to read instead of the usual fields."""
        self._names = {
            key: (fields[key],) if key in fields else usual for key, usual in FIELDS.items()
        }
        #: The names that were found last, by key.
        self._last = {key: names[0] for key, names in self._names.items()}
        #: Method and path were found in one text.
        self._in_line = False
        self._instants = InstantTexts()

    def read(self, block: bytes) -> LogLines:
        """Return the requests in a block of complete lines.

        Lines that are not JSON objects with a valid time, and method and path or a request line,
        are listed as unreadable; blank lines are skipped.
        """
        lines = LogLines()
        for at, line in enumerate(block.decode("utf-8", "replace").split("\n")):
            if not line.strip():
                continue
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                document = None
            if not isinstance(document, dict) or not self._add(document, lines):
                lines.unreadable.append(at)
        return lines

    def _add(self, document: dict[str, Any], lines: LogLines) -> bool:
        method, target = self._request(document)
        time_us = self._time_us(document)
        if not method or not target or time_us < 0:
            return False
        took_s = _number(self._value(document, "took"))
        path, mark, _ = target.partition("?")
        lines.times_us.append(time_us - round(min(max(took_s, 0.0), 1e6) * _SECOND_US))
        lines.requests.append(f"{method} {path}".encode("utf-8", "replace"))
        status = int(_number(self._value(document, "status")))
        lines.statuses.append(status if 100 <= status <= 599 else 0)
        lines.queries += mark != ""
        return True

    def _request(self, document: dict[str, Any]) -> tuple[str, str]:
        line = self._value(document, "request") if self._in_line else None
        if not isinstance(line, str):
            method, path = self._value(document, "method"), self._value(document, "path")
            if isinstance(method, str) and isinstance(path, str):
                return _request(method.upper(), path)
            line = self._value(document, "request")
        if not isinstance(line, str):
            return "", ""
        # most lines are like the one before
        self._in_line = True
        method, _, rest = line.partition(" ")
        return _request(method, rest.partition(" ")[0])

    def _time_us(self, document: dict[str, Any]) -> int:
        found = self._value(document, "time")
        number = _number(found)
        if number or not isinstance(found, str):
            return _epoch_us(number)
        return self._instants[found.encode("utf-8", "replace")]

    def _value(self, document: dict[str, Any], key: str) -> Any:
        found = _nested_value(document, self._last[key])
        if found is not None:
            return found
        for name in self._names[key]:
            found = _nested_value(document, name)
            if found is not None:
                self._last[key] = name
                return found
        return None


def _request(method: str, target: str) -> tuple[str, str]:
    """Return (method, target) if both are valid in a request line, else ("", "")."""
    if target and " " not in target and method.isascii() and method.isalpha() and method.isupper():
        return method, target
    return "", ""


def _nested_value(document: dict[str, Any], name: str) -> Any:
    found = document.get(name)
    if found is not None or "." not in name:
        return found
    outer, _, inner = name.partition(".")
    below = document.get(outer)
    return _nested_value(below, inner) if isinstance(below, dict) else None


#: Types that may be numbers; true and false are none.
_NUMBERS = frozenset({int, float, str})


def _number(value: Any) -> float:
    """Return `value` as a float if it is a number or a string of a number; else 0.

    Also 0 for booleans, infinity and NaN.
    """
    if type(value) not in _NUMBERS:
        return 0.0
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return found if math.isfinite(found) else 0.0


def _epoch_us(number: float) -> int:
    """Convert a time since the epoch, in s, ms, us or ns, to microseconds.

    The unit is the first of these that gives a time from 1990 to 2100; -1 if none does.
    """
    for _ in range(4):
        if _EARLIEST_S <= number <= _LATEST_S:
            return round(number * _SECOND_US)
        number /= 1000
    return -1


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NCSA = re.compile(
    r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?(?: ([+-]\d\d)(\d\d))?"
)


def _instant_us(text: str) -> int:
    """Convert a time in NCSA or ISO format to microseconds since the epoch; -1 for other strings.

    Without a time zone it is in UTC. -1 also for ISO times outside 1990 to 2100.
    """
    try:
        found = _NCSA.fullmatch(text)
        if found is None:
            return _iso_us(text)
        day, month, year, hour, minute, second, fraction, zone_h, zone_m = found.groups()
        at = datetime(
            int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC
        )
        # a leap second is the first of the next minute
        seconds = int(at.timestamp()) + int(second)
        if zone_h is not None:
            away = int(zone_h[1:]) * 3600 + int(zone_m) * 60
            seconds -= -away if zone_h[0] == "-" else away
        return seconds * _SECOND_US + int((fraction or "0").ljust(6, "0"))
    except (ValueError, OverflowError):
        return -1


def _iso_us(text: str) -> int:
    at = datetime.fromisoformat(text)
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return _epoch_us(round(at.timestamp(), 6))


def written_lines(block: bytes) -> list[int]:
    """Return the positions of the lines that are not blank, from 0."""
    return [at for at, line in enumerate(block.split(b"\n")) if line.strip()]


def formats(fields: Mapping[str, str]) -> Iterator[LogFormat]:
    """Yield new objects of the formats to try: combined, HAProxy, JSON.

    If `fields` (names of JSON fields by key of `FIELDS`) is not empty, only JSON.
    """
    if not fields:
        yield combined_format()
        yield haproxy()
    yield JsonFormat(fields)
