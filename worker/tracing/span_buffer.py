"""Buffer of finished traces that go to the coordinator in result blocks.

Used by runs without a trace store.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import Any

import msgpack

from osbench.worker.tracing.span_events import Trace, WallClock

#: Spans, and characters of their info, that one block may hold; one trace may exceed them.
_SPANS, _CHARS = 2000, 1 << 20


class SpanBuffer:
    """Finished traces that wait for a result block, bounded by their number of spans.

    Threads may call `put` while one thread calls `take`.
    """

    def __init__(self, limit_spans: int, to_wall_ns: Callable[[int], int] | None = None) -> None:
        self._limit = limit_spans
        self._host = socket.gethostname()
        self._to_wall_ns = to_wall_ns or WallClock()
        self._traces: deque[Trace] = deque()
        # Threads add to the first two without a lock: the interpreter switches threads at calls
        # and jumps back, never within `+=` on an attribute.
        self._entered = self._dropped = 0
        self._left = self._written = 0

    def put(self, trace: Trace) -> None:
        """Take a finished trace, or drop it and count its spans if too many wait. Never waits."""
        spans = len(trace[1])
        if self._entered - self._left + spans > self._limit:
            self._dropped += spans
            return
        self._entered += spans
        self._traces.append(trace)

    def take(self) -> bytes:
        """Remove the oldest waiting traces and return them packed; b"" if there are none.

        The result is msgpack of the host name and a list of traces. Takes whole traces until
        `_SPANS` spans or `_CHARS` characters are reached; their spans count as written.
        """
        found: list[Any] = []
        spans = chars = 0
        while self._traces and spans < _SPANS and chars < _CHARS:
            trace = self._traces.popleft()
            form = self._form(trace)
            found.append(form)
            spans += len(trace[1])
            chars += sum(len(span[5]) for span in form[3])
        self._left += spans
        self._written += spans
        # names may hold characters that UTF-8 cannot encode
        packed: bytes = msgpack.packb([self._host, found], unicode_errors="replace")
        return packed if found else b""

    def clear(self) -> None:
        """Drop the waiting traces, which an earlier run has left; count their spans as dropped."""
        while self._traces:
            spans = len(self._traces.popleft()[1])
            self._left += spans
            self._dropped += spans

    def stats(self) -> dict[str, Any]:
        """Return counts of spans since the start: `written` (taken), `dropped` and `waiting`."""
        return {
            "written": self._written,
            "dropped": self._dropped,
            "waiting": self._entered - self._left,
        }

    def close(self, timeout_s: float) -> None:
        """Do nothing: waiting traces go with blocks of a membership, or are dropped by `clear`."""

    def _form(self, trace: Trace) -> list[Any]:
        """Return a trace as lists: trace id, fixed part of the span ids, suffix of span 0, spans.

        A span is its number, its parent's, its name, wall-clock start in ns since 1970, duration in
        ns, and its info as JSON members.
        """
        ids, spans = trace
        # one offset for the whole trace: steps of the wall clock do not affect durations
        offset = self._to_wall_ns(spans[-1][3]) - spans[-1][3]
        return [
            ids[0],
            ids[1][8:],
            ids[2],
            [
                [number, parent, str(name)[:200], started + offset, stopped - started, first + last]
                for number, parent, name, started, stopped, first, last in spans
            ],
        ]
