"""Profiling of iterations: OSProfiler's interface for scenarios, with low overhead.

OSProfiler's own profiler generates ids, formats times and looks up the host name twice per span,
and its Redis driver writes to the store within the measured code. Here a span is one tuple in
memory; the process's `SpanWriter` formats and sends it after the iteration.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any, Protocol

import osprofiler.profiler
import osprofiler.web

from osbench.common.values.trace_mark import TraceMark
from osbench.worker.tracing.iteration_profiler import IterationProfiler
from osbench.worker.tracing.span_events import Trace
from osbench.worker.tracing.span_info import failure_text
from osbench.worker.tracing.trace_ids import IdPool, mix, threshold

_TIMED_OUT = ',"timed_out":true'

_PROFILER: ContextVar[Any] = ContextVar("osbench_profiler", default=None)


class _Current:
    """The current profiler of a thread, or of a task and the tasks that it creates.

    It replaces OSProfiler's own object of that kind.
    """

    @property
    def profiler(self) -> Any:
        """Return the running iteration's profiler, as OSProfiler does; None if untraced."""
        return _PROFILER.get()

    @profiler.setter
    def profiler(self, profiler: Any) -> None:
        _PROFILER.set(profiler)


# There is no public way to install a profiler of another class, nor to have one for each task.
_CURRENT = vars(osprofiler.profiler)["__local_ctx"] = _Current()


class TraceSink(Protocol):
    """Destination of finished traces: `SpanWriter` (store) or `SpanBuffer` (result blocks)."""

    def put(self, trace: Trace) -> None:
        """Take a finished trace, or drop it and count its spans if too many wait. Never waits."""


class Tracer:
    """Decides which iterations of a workload are traced, and traces them.

    One per workload and process, created after the process has forked. With `writer` None spans are
    discarded; requests carry trace headers all the same.
    """

    def __init__(
        self,
        hmac_key: str,
        run_id: str,
        sample_rate: float,
        writer: TraceSink | None,
        seed: int,
        scenario: str = "",
        *,
        kind: type[IterationProfiler] = IterationProfiler,
    ) -> None:
        """Create the tracer; `hmac_key`: OSProfiler's; with "" requests carry `traceparent` only.

        `seed` decides which iterations are traced. `kind` is the class of profilers, which is
        another one for coroutines. Raises ValueError if `sample_rate`, a fraction, is not within 0
        and 1.
        """
        self._hmac_key = hmac_key
        self._writer = writer
        self._kind = kind
        self._seed = seed
        self._threshold = threshold(sample_rate)
        self._ids = IdPool(TraceMark(run_id))
        named = {"run": run_id, "scenario": scenario} if scenario else {"run": run_id}
        self._root_info = f',{json.dumps(named)[1:-1]},"iteration":'
        #: Iterations that found a profiler left behind in their thread.
        self.stale = 0
        #: Spans left out above the limit of an iteration.
        self.cut = 0

    def sampled(self, iteration: int) -> bool:
        """Return whether iteration number `iteration` is traced; the same in every process."""
        return mix(self._seed, iteration) < self._threshold

    def clear(self) -> None:
        """Remove a profiler that an earlier iteration left in this thread; count it in `stale`.

        Called for iterations that are not traced.
        """
        if _CURRENT.profiler is not None:
            self.stale += 1
            _CURRENT.profiler = None

    def begin(self, iteration: int) -> IterationProfiler:
        """Start the trace of an iteration in this thread or task; return its profiler.

        The root span is open, and the profiler is OSProfiler's current one.
        """
        self.clear()
        profiler = self._kind(self._hmac_key, self._ids.mint(), f"{self._root_info}{iteration}")
        _CURRENT.profiler = profiler
        return profiler

    def end(self, profiler: IterationProfiler, failure: tuple[str, str] | None) -> bytes:
        """Finish the trace of an iteration, pass it to the writer; return its id, 16 bytes.

        `failure` is the type and the message of the iteration's exception, None without one. The
        thread has no profiler afterwards. Never waits.
        """
        _CURRENT.profiler = None
        return self._finish(profiler, failure_text(*failure) if failure else "")

    def abandon(
        self, profiler: IterationProfiler, failure: tuple[str, str] = ("TimedOut", "")
    ) -> bytes:
        """Finish the trace of a timed-out iteration from another thread; return its id, 16 bytes.

        The trace goes to the writer. Later work of the iteration's thread is not traced, and its
        requests carry no trace headers. `failure` is type and message of the error.
        """
        profiler.abandoned = True
        # for OSProfiler, which signs headers with it
        profiler.hmac_key = ""
        return self._finish(profiler, failure_text(*failure) + _TIMED_OUT)

    def _finish(self, profiler: IterationProfiler, info: str) -> bytes:
        trace = profiler.finish(info)
        if profiler.cut:
            self.cut += profiler.cut
        if self._writer is not None:
            self._writer.put(trace)
        return trace[0][0]


def trace_headers() -> dict[str, str]:
    """Return headers that attach a request made now to the trace of the calling iteration.

    Returns {} if it is not traced. Also for a profiler that the scenario has started by OSProfiler.
    """
    profiler = _CURRENT.profiler
    if profiler is None:
        return {}
    if not isinstance(profiler, IterationProfiler):
        # the scenario has started a profiler of OSProfiler's own class
        return osprofiler.web.get_trace_id_headers()
    return profiler.trace_headers()
