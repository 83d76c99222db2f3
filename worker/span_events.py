"""Finished traces as OSProfiler's Redis driver would have stored them, in Redis' wire format.

A span is two events, `<name>-start` and `<name>-stop`, each a JSON object at the head of the
list `osprofiler_opt:<trace id>`. All events of a trace go into one LPUSH; the EXPIRE after it
also covers what services put into the list, for they set none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import lru_cache

from osbench.worker.trace_ids import TraceIds, tail, uuid_text

#: Number, parent's number (-1: the trace itself), name, start and stop on the monotonic clock
#: in nanoseconds, and JSON members that go into the info of either event.
Span = tuple[int, int, str, int, int, str, str]

#: A finished trace.
Trace = tuple[TraceIds, list[Span]]

#: Replies that the store sends to one trace's commands.
REPLIES = 2

_NAME = 200


class WallClock:
    """Monotonic instants as nanoseconds since 1970 of the host's wall clock."""

    #: How long an offset serves; a clock that is being slewed moves up to 0.5 ms a second.
    _FRESH_NS = 1_000_000_000

    def __init__(self) -> None:
        self._offset_ns = 0
        self._until_ns = 0

    def __call__(self, monotonic_ns: int) -> int:
        """The wall-clock instant, in nanoseconds, of a monotonic one."""
        now = time.monotonic_ns()
        if now >= self._until_ns:
            self._offset_ns = time.time_ns() - now
            self._until_ns = now + self._FRESH_NS
        return monotonic_ns + self._offset_ns


class EventFormat:
    """Writes traces as commands; one per thread."""

    def __init__(
        self, host: str, service: str, expiry_s: int, to_wall_ns: Callable[[int], int]
    ) -> None:
        self._host = f'"info":{{"host":{json.dumps(host)}'
        self._end = f'}},"project":"osbench","service":{json.dumps(service)}}}'
        expiry = str(expiry_s)
        self._expiry = f"${len(expiry)}\r\n{expiry}\r\n"
        self._to_wall_ns = to_wall_ns
        self._second = -1
        self._second_text = ""

    def commands(self, trace: Trace) -> bytes:
        """LPUSH and EXPIRE for one trace."""
        ids, spans = trace
        base = uuid_text(ids.trace)
        key = f"$51\r\nosprofiler_opt:{base}\r\n"
        parts = [f"*{2 + 2 * len(spans)}\r\n$5\r\nLPUSH\r\n{key}"]
        for _, event in sorted(self._events(base, trace)):
            parts.append(f"${len(event)}\r\n{event}\r\n")
        parts.append(f"*3\r\n$6\r\nEXPIRE\r\n{key}{self._expiry}")
        # ASCII throughout, as json escapes the rest: characters are bytes
        return "".join(parts).encode("ascii")

    def _events(self, base: str, trace: Trace) -> list[tuple[int, str]]:
        ids, spans = trace
        # one offset for the whole trace: no step of the wall clock reaches a duration
        offset = self._to_wall_ns(spans[-1][3]) - spans[-1][3]
        prefix, lower = ids.prefix(), ids.lower
        events = []
        for number, parent, name, started, stopped, first, last in spans:
            parent_id = base if parent < 0 else f"{prefix}{tail(lower + parent)}"
            middle = (
                f'"base_id":"{base}","trace_id":"{prefix}{tail(lower + number)}", '
                f'"parent_id":"{parent_id}","timestamp":"'
            )
            text = _name(name)
            for instant, suffix, info in ((started, "start", first), (stopped, "stop", last)):
                rest = f",{info}{self._end}" if info else self._end
                at = self._timestamp(instant + offset)
                event = f'{{"name":"{text}-{suffix}",{middle}{at}",{self._host}{rest}'
                events.append((instant, event))
        return events

    def _timestamp(self, wall_ns: int) -> str:
        second, rest = divmod(wall_ns, 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{rest // 1000:06d}"


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    return json.dumps(str(name)[:_NAME])[1:-1]
