"""Profiling of iterations: OSProfiler's interface for scenarios, at a cost a load test can bear.

OSProfiler's own profiler draws ids, formats times and asks for the host name twice a span, and
its Redis driver talks to the store in the middle of the measured code. Here a span is one tuple
in memory; text is made and sent by the process's `SpanWriter`, after the iteration.
"""

from __future__ import annotations

import json
import threading
from typing import cast

import osprofiler.profiler
import osprofiler.web

from osbench.worker.tracing.iteration_profiler import IterationProfiler
from osbench.worker.tracing.sampler import mix, threshold
from osbench.worker.tracing.span_info import failure_text
from osbench.worker.tracing.span_writer import SpanWriter
from osbench.worker.tracing.trace_ids import IdPool

_TIMED_OUT = ',"timed_out":true'

# There is no public way to install a profiler of another class. Name mangling keeps this name
# from being written as an attribute inside a class.
_CURRENT = cast(threading.local, vars(osprofiler.profiler)["__local_ctx"])


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

    def clear(self) -> None:
        """Remove what a scenario may have left in this thread; for iterations not traced."""
        if getattr(_CURRENT, "profiler", None) is not None:
            self.stale += 1
            _CURRENT.profiler = None

    def begin(self, iteration: int) -> IterationProfiler:
        """Start a trace in this thread, its root span open."""
        self.clear()
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
    """Headers that join a request of this thread to its trace; {} where it has none."""
    profiler = getattr(_CURRENT, "profiler", None)
    if profiler is None or not profiler.hmac_key:
        return {}
    if not isinstance(profiler, IterationProfiler):
        # a scenario that profiles itself, with OSProfiler's own class
        return osprofiler.web.get_trace_id_headers()
    return profiler.trace_headers()
