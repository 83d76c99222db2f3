"""OSProfiler's profiler for one iteration of a scenario, with spans as tuples in memory."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

import osprofiler.profiler
import osprofiler.web

from osbench.worker.tracing.span_events import Span, Trace
from osbench.worker.tracing.span_info import info_text
from osbench.worker.tracing.trace_ids import TraceIds, span_text, traceparent, uuid_text

#: Name of the span that covers an iteration.
ROOT = "osbench.iteration"

#: Spans kept of one iteration; further ones are counted.
SPAN_LIMIT = 10_000

#: Info of a span that its iteration's end, or that of a span around it, cut short.
UNFINISHED = ',"unfinished":true'


class IterationProfiler(osprofiler.profiler._Profiler):
    """The profiler of one traced iteration, with OSProfiler's interface; keeps spans in memory.

    Used by the iteration's own thread; only `Tracer.abandon` may come from another thread.
    """

    def __init__(self, hmac_key: str, ids: TraceIds, root_info: str) -> None:
        # the inherited constructor would draw a UUID and ask for the host name
        self.hmac_key = hmac_key
        self._ids = ids
        self._spans: list[Span] = []
        self._open: list[tuple[int, str, int, str]] = [(0, ROOT, monotonic_ns(), root_info)]
        self._next = 1
        self._over = False
        #: Its iteration has timed out: further work is not traced.
        self.abandoned = False
        #: Spans left out above `SPAN_LIMIT`.
        self.cut = 0

    def get_base_id(self) -> str:
        """Return the trace id as a UUID string."""
        return uuid_text(self._ids[0])

    def get_id(self) -> str:
        """Return the innermost open span's id as a UUID string."""
        return span_text(self._ids, self._open[-1][0])

    def get_parent_id(self) -> str:
        """Return the id of the span around the innermost open one; the trace id for the root."""
        if len(self._open) < 2:
            return self.get_base_id()
        return span_text(self._ids, self._open[-2][0])

    def start(self, name: str, info: dict[str, Any] | None = None) -> None:
        """Open a span within the innermost open one; does nothing once the trace is finished.

        `info` is copied with secrets masked.
        """
        self.open(name, info)

    def stop(self, info: dict[str, Any] | None = None) -> None:
        """Close the innermost open span, adding `info`; ignored for the root, or once finished."""
        # only the tracer closes the root
        if len(self._open) > 1 and not self._over:
            self._close(info_text(info) if info else "")

    def open(self, name: str, info: Mapping[str, Any] | None = None) -> int:
        """Open a span within the innermost open one; return its number for `close`.

        `info` is copied with secrets masked. Once the trace is finished, no span is opened, and the
        number belongs to none.
        """
        number = self._next
        if not self._over:
            self._next = number + 1
            text = info_text(info) if info else ""
            self._open.append((number, name, monotonic_ns(), text))
        return number

    def close(self, number: int, info: Mapping[str, Any] | None = None) -> None:
        """Close span `number`, adding `info`; close spans still open within it as unfinished.

        Does nothing if the span is closed already, as by a surplus `stop`, or the trace finished.
        """
        if self._over:
            return
        if self._open[-1][0] != number:
            if all(entry[0] != number for entry in self._open):
                return
            while self._open[-1][0] != number:
                self._close(UNFINISHED)
        self._close(info_text(info) if info else "")

    def traceparent(self) -> str:
        """Return the W3C header `traceparent` for a request within the innermost open span."""
        return traceparent(self._ids, self._open[-1][0])

    def trace_headers(self) -> dict[str, str]:
        """Return headers that attach a request made now to the innermost open span.

        They are W3C `traceparent` and, with an HMAC key, the two signed headers of OSProfiler; {}
        once the trace is abandoned.
        """
        if self.abandoned:
            return {}
        if not self.hmac_key:
            return {"traceparent": self.traceparent()}
        ids = f'{{"base_id": "{self.get_base_id()}", "parent_id": "{self.get_id()}"}}'
        packed = base64.urlsafe_b64encode(ids.encode())
        # SHA-1 because OSProfiler's middleware accepts nothing else
        signature = hmac.digest(self.hmac_key.encode(), packed, "sha1").hex()
        return {
            osprofiler.web.X_TRACE_INFO: packed.decode(),
            osprofiler.web.X_TRACE_HMAC: signature,
            "traceparent": self.traceparent(),
        }

    def finish(self, root_info: str) -> Trace:
        """Close all open spans and return the trace; later calls of other methods change nothing.

        `root_info`: info added to the root, as JSON members. Open spans but the root become
        unfinished. Spans above `SPAN_LIMIT` are left out and counted in `cut`. May be called from
        another thread.
        """
        now = monotonic_ns()
        self._over = True
        # Open spans first: `_close` adds to the closed ones before it takes from the open ones.
        still = list(self._open)
        spans = list(self._spans)
        closed = {span[0] for span in spans} if len(still) > 1 else ()
        while still:
            number, name, started, text = still.pop()
            if number in closed:
                continue
            if number and len(spans) >= SPAN_LIMIT:
                self.cut += 1
                continue
            info = UNFINISHED if number else root_info
            parent = still[-1][0] if still else -1
            spans.append((number, parent, name, started, now, text, info))
        return self._ids, tuple(spans)

    def _close(self, info: str) -> None:
        number, name, started, text = self._open[-1]
        if len(self._spans) < SPAN_LIMIT:
            parent = self._open[-2][0]
            self._spans.append((number, parent, name, started, monotonic_ns(), text, info))
        else:
            self.cut += 1
        self._open.pop()
