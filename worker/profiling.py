"""Profiling of iterations: OSProfiler's interface for scenarios, at a cost a load test can bear.

OSProfiler's own profiler draws ids, formats times and asks for the host name twice a span, and
its Redis driver talks to the store in the middle of the measured code. Here a span is one tuple
in memory; text is made and sent by the process's `SpanWriter`, after the iteration.
"""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Mapping
from time import monotonic_ns
from typing import Any, cast

import osprofiler.profiler
import osprofiler.web

from osbench.worker.sampling import mix, threshold
from osbench.worker.span_events import Span, Trace
from osbench.worker.span_info import failure_text, info_text
from osbench.worker.spans import SpanWriter
from osbench.worker.trace_ids import IdPool, TraceIds, span_text, traceparent, uuid_text

#: Name of the span that covers an iteration.
ROOT = "osbench.iteration"

#: Spans kept of one iteration; further ones are counted.
SPAN_LIMIT = 10_000

_UNFINISHED = ',"unfinished":true'
_TIMED_OUT = ',"timed_out":true'

# There is no public way to install a profiler of another class. Name mangling keeps this name
# from being written as an attribute inside a class.
_CURRENT = cast(threading.local, vars(osprofiler.profiler)["__local_ctx"])


class IterationProfiler(osprofiler.profiler._Profiler):
    """OSProfiler's profiler for one iteration; keeps spans in memory.

    Used by the iteration's own thread. `Tracer.abandon` may come from another one at any time.
    """

    def __init__(self, hmac_key: str, ids: TraceIds, root_info: str) -> None:
        # the inherited constructor would draw a UUID and ask for the host name
        self.hmac_key = hmac_key
        self._ids = ids
        self._spans: list[Span] = []
        self._open: list[tuple[int, str, int, str]] = [(0, ROOT, monotonic_ns(), root_info)]
        self._next = 1
        self._over = False
        #: Spans left out above `SPAN_LIMIT`.
        self.cut = 0

    def get_base_id(self) -> str:
        """The trace id as a UUID's text."""
        return uuid_text(self._ids[0])

    def get_id(self) -> str:
        """The innermost open span's id as a UUID's text."""
        return span_text(self._ids, self._open[-1][0])

    def get_parent_id(self) -> str:
        """The id of the span around the innermost open one; the trace id for the root."""
        if len(self._open) < 2:
            return self.get_base_id()
        return span_text(self._ids, self._open[-2][0])

    def start(self, name: str, info: dict[str, Any] | None = None) -> None:
        """Open a span within the innermost open one."""
        self.open(name, info)

    def stop(self, info: dict[str, Any] | None = None) -> None:
        """Close the innermost open span; a call too many is ignored."""
        # the root is the tracer's to close
        if len(self._open) > 1 and not self._over:
            self._close(info_text(info) if info else "")

    def open(self, name: str, info: Mapping[str, Any] | None = None) -> int:
        """Open a span and return the number by which `close` knows it."""
        number = self._next
        if not self._over:
            self._next = number + 1
            text = info_text(info) if info else ""
            self._open.append((number, name, monotonic_ns(), text))
        return number

    def close(self, number: int, info: Mapping[str, Any] | None = None) -> None:
        """Close the span `number`, and as unfinished those still open within it.

        Does nothing where too many calls of `stop` have closed it before.
        """
        if self._over:
            return
        if self._open[-1][0] != number:
            if all(entry[0] != number for entry in self._open):
                return
            while self._open[-1][0] != number:
                self._close(_UNFINISHED)
        self._close(info_text(info) if info else "")

    def traceparent(self) -> str:
        """W3C `traceparent` of a request made now."""
        return traceparent(self._ids, self._open[-1][0])

    def finish(self, root_info: str) -> Trace:
        """Close whatever is open; later calls change nothing. May come from another thread."""
        now = monotonic_ns()
        self._over = True
        # Open spans first: `_close` adds to the closed ones before it takes from the open ones.
        still = list(self._open)
        spans = list(self._spans)
        closed = {span[0] for span in spans} if len(still) > 1 else ()
        while still:
            number, name, started, text = still.pop()
            if number not in closed and (number == 0 or len(spans) < SPAN_LIMIT):
                said = _UNFINISHED if number else root_info
                parent = still[-1][0] if still else -1
                spans.append((number, parent, name, started, now, text, said))
        return self._ids, tuple(spans)

    def _close(self, said: str) -> None:
        number, name, started, text = self._open[-1]
        if len(self._spans) < SPAN_LIMIT:
            parent = self._open[-2][0]
            self._spans.append((number, parent, name, started, monotonic_ns(), text, said))
        else:
            self.cut += 1
        self._open.pop()


class Tracer:
    """Decides which iterations of a workload are traced, and traces them.

    One per workload and process, made after the process has forked. `writer` is None where the
    spans have nowhere to go; requests carry trace headers all the same.
    """

    def __init__(
        self,
        hmac_key: str,
        run_id: str,
        sample_rate: float,
        writer: SpanWriter | None,
        seed: int,
        *,
        scenario: str = "",
    ) -> None:
        """Raises ValueError for a sample rate outside 0 to 1."""
        self._hmac_key = hmac_key
        self._writer = writer
        self._seed = seed
        self._threshold = threshold(sample_rate)
        self._ids = IdPool()
        named = {"run": run_id, "scenario": scenario} if scenario else {"run": run_id}
        self._root_info = f',{json.dumps(named)[1:-1]},"iteration":'
        #: Iterations that found a profiler left behind in their thread.
        self.stale = 0
        #: Spans left out because their iteration had too many.
        self.cut = 0

    def sampled(self, iteration: int) -> bool:
        """Whether this iteration is traced; the same answer in every process of a run."""
        return mix(self._seed, iteration) < self._threshold

    def begin(self, iteration: int) -> IterationProfiler:
        """Start a trace in this thread, its root span open."""
        if getattr(_CURRENT, "profiler", None) is not None:
            self.stale += 1
        profiler = IterationProfiler(
            self._hmac_key, self._ids.mint(), f"{self._root_info}{iteration}"
        )
        _CURRENT.profiler = profiler
        return profiler

    def end(self, profiler: IterationProfiler, failure: tuple[str, str] | None) -> bytes:
        """Finish the trace of this thread and hand it on; returns the trace id, 16 bytes.

        `failure` is the type and the message of what the iteration raised. Never waits.
        """
        _CURRENT.profiler = None
        return self._finish(profiler, failure_text(*failure) if failure else "")

    def abandon(
        self, profiler: IterationProfiler, failure: tuple[str, str] = ("TimedOut", "")
    ) -> bytes:
        """Finish the trace of a thread that is given up, from outside; returns the trace id.

        Whatever that thread does later is not traced and its requests carry no trace headers.
        """
        profiler.hmac_key = ""
        return self._finish(profiler, failure_text(*failure) + _TIMED_OUT)

    def _finish(self, profiler: IterationProfiler, said: str) -> bytes:
        trace = profiler.finish(said)
        if profiler.cut:
            self.cut += profiler.cut
        if self._writer is not None:
            self._writer.put(trace)
        return trace[0][0]


def trace_headers() -> dict[str, str]:
    """Headers that join a request of this thread to its trace; {} where it has none.

    OSProfiler's two, signed, and W3C `traceparent`.
    """
    profiler = getattr(_CURRENT, "profiler", None)
    if profiler is None or not profiler.hmac_key:
        return {}
    if not isinstance(profiler, IterationProfiler):
        # a scenario that profiles itself, with OSProfiler's own class
        return osprofiler.web.get_trace_id_headers()
    ids = f'{{"base_id": "{profiler.get_base_id()}", "parent_id": "{profiler.get_id()}"}}'
    packed = base64.urlsafe_b64encode(ids.encode())
    # SHA-1 because OSProfiler's middleware accepts nothing else
    signature = hmac.digest(profiler.hmac_key.encode(), packed, "sha1").hex()
    return {
        osprofiler.web.X_TRACE_INFO: packed.decode(),
        osprofiler.web.X_TRACE_HMAC: signature,
        "traceparent": profiler.traceparent(),
    }
