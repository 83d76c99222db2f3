"""Finished traces in the format of OSProfiler's Redis driver, as Redis commands.

A span is two events, `<name>-start` and `<name>-stop`, each a JSON object at the head of the
list `osprofiler_opt:<trace id>`. All events of a trace go into one LPUSH; the EXPIRE after it
also applies to events of services, which set no expiry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import lru_cache

from osbench.worker.tracing.trace_ids import TraceIds, prefix, uuid_text

#: Number, parent's number (-1: the trace itself), name, start and stop on the monotonic clock
#: in nanoseconds, and the text of `osbench.worker.tracing.span_info` for either event.
Span = tuple[int, int, str, int, int, str, str]

#: A finished trace; the root span comes last.
Trace = tuple[TraceIds, tuple[Span, ...]]

#: Replies that the store sends to one trace's commands.
REPLIES = 2

_NAME = 200


class WallClock:
    """Converts monotonic times to wall-clock times of this host, ns since 1970, if called."""

    #: How long an offset is used; a clock that is being slewed moves up to 0.5 ms per second.
    _FRESH_NS = 1_000_000_000

    def __init__(self) -> None:
        self._offset_ns = 0
        self._until_ns = 0

    def __call__(self, monotonic_ns: int) -> int:
        """Return the wall-clock time of a monotonic one, both in ns.

        The offset of the clocks is measured at most once a second.
        """
        now = time.monotonic_ns()
        if now >= self._until_ns:
            self._offset_ns = time.time_ns() - now
            self._until_ns = now + self._FRESH_NS
        return monotonic_ns + self._offset_ns


class EventFormat:
    """Formats traces as Redis commands, in OSProfiler's format; used by one thread."""

    def __init__(
        self, host: str, service: str, expiry_s: int, to_wall_ns: Callable[[int], int]
    ) -> None:
        self._host = f'"info":{{"host":{json.dumps(host)}'
        self._end = f'}},"project":"osbench","service":{json.dumps(service)}}}'
        expiry = str(expiry_s)
        self._expiry = f"${len(expiry)}\r\n{expiry}\r\n"
        self._to_wall_ns = to_wall_ns
        self._second_us = -1_000_000
        self._second_text = ""

    def commands(self, trace: Trace) -> str:
        """Return the commands LPUSH and EXPIRE for one trace, in the Redis protocol, ASCII only.

        Each span is two events; the newest event becomes the head of the list.
        """
        base = uuid_text(trace[0][0])
        key = f"$51\r\nosprofiler_opt:{base}\r\n"
        events = self._events(base, trace)
        # the head of the list is the newest event
        events.sort()
        pushed = "".join([f"${len(event)}\r\n{event}\r\n" for _, event in events])
        return (
            f"*{2 + len(events)}\r\n$5\r\nLPUSH\r\n{key}{pushed}"
            f"*3\r\n$6\r\nEXPIRE\r\n{key}{self._expiry}"
        )

    def _events(self, base: str, trace: Trace) -> list[tuple[int, str]]:
        ids, spans = trace
        # one offset for the whole trace: steps of the wall clock do not affect durations
        offset = self._to_wall_ns(spans[-1][3]) - spans[-1][3]
        front, zero = prefix(ids), ids[2]
        host, end, timestamp = self._host, self._end, self._timestamp
        events = []
        for number, parent, name, started, stopped, first, last in spans:
            text = _name(name)
            around = base if parent < 0 else f"{front}{zero + parent:012x}"
            middle = (
                f'"base_id":"{base}","trace_id":"{front}{zero + number:012x}",'
                f'"parent_id":"{around}","timestamp":"'
            )
            at = timestamp(started + offset)
            events.append((started, f'{{"name":"{text}-start",{middle}{at}",{host}{first}{end}'))
            at = timestamp(stopped + offset)
            events.append((stopped, f'{{"name":"{text}-stop",{middle}{at}",{host}{last}{end}'))
        return events

    def _timestamp(self, wall_ns: int) -> str:
        micros = wall_ns // 1000 - self._second_us
        if not 0 <= micros < 1_000_000:
            second, micros = divmod(wall_ns // 1000, 1_000_000)
            self._second_us = second * 1_000_000
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._second_text}{micros:06d}"


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    return json.dumps(str(name)[:_NAME])[1:-1]
