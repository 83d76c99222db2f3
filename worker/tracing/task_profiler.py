"""The profiler of an iteration that is a coroutine: each of its tasks has its own open spans."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from time import monotonic_ns
from typing import Any

from osbench.worker.tracing.iteration_profiler import SPAN_LIMIT, UNFINISHED, IterationProfiler
from osbench.worker.tracing.span_events import Trace
from osbench.worker.tracing.span_info import info_text
from osbench.worker.tracing.trace_ids import TraceIds, span_text, traceparent

#: Numbers of the open spans, innermost last. A task begins with the spans of the task that created
#: it.
_STACK: ContextVar[tuple[int, ...]] = ContextVar("osbench_open_spans", default=(0,))

#: Parent, name, start, and the text of the first event.
_Open = tuple[int, str, int, str]


class TaskProfiler(IterationProfiler):
    """The profiler of an iteration that is a coroutine; each task has its own innermost open span.

    A new task begins with the open spans of the task that created it. `Tracer.abandon` may be
    called from another thread.
    """

    def __init__(self, hmac_key: str, ids: TraceIds, root_info: str) -> None:
        super().__init__(hmac_key, ids, root_info)
        number, name, started, text = self._open[0]
        #: Open spans by number.
        self._running: dict[int, _Open] = {number: (-1, name, started, text)}
        _STACK.set((0,))

    def get_id(self) -> str:
        """Return the id of this task's innermost open span, as a UUID string."""
        return span_text(self._ids, _STACK.get()[-1])

    def get_parent_id(self) -> str:
        """Return the id of the span around this task's innermost one; the trace id for the root."""
        stack = _STACK.get()
        return span_text(self._ids, stack[-2]) if len(stack) > 1 else self.get_base_id()

    def traceparent(self) -> str:
        """Return the W3C header `traceparent` for a request within this task's innermost span."""
        return traceparent(self._ids, _STACK.get()[-1])

    def stop(self, info: dict[str, Any] | None = None) -> None:
        """Close the innermost open span of this task, adding `info`; ignored for the root."""
        stack = _STACK.get()
        if len(stack) > 1:
            self.close(stack[-1], info)

    def open(self, name: str, info: Mapping[str, Any] | None = None) -> int:
        """Open a span within the innermost open span of this task; return its number."""
        number = self._next
        if not self._over:
            self._next = number + 1
            stack = _STACK.get()
            text = info_text(info) if info else ""
            self._running[number] = (stack[-1], name, monotonic_ns(), text)
            _STACK.set((*stack, number))
        return number

    def close(self, number: int, info: Mapping[str, Any] | None = None) -> None:
        """Close span `number`, adding `info`, and unfinished spans of this task within it."""
        stack = _STACK.get()
        if self._over or number not in stack:
            return
        while stack[-1] != number:
            self._take(stack[-1], UNFINISHED)
            stack = stack[:-1]
        self._take(number, info_text(info) if info else "")
        _STACK.set(stack[:-1])

    def finish(self, root_info: str) -> Trace:
        now = monotonic_ns()
        self._over = True
        # Open spans first: `_take` adds to the closed ones before it takes from the open ones.
        still = self._running.copy()
        spans = list(self._spans)
        closed = {span[0] for span in spans}
        # the root last
        for number in sorted(still.keys() - closed, reverse=True):
            if number and len(spans) >= SPAN_LIMIT:
                self.cut += 1
                continue
            parent, name, started, text = still[number]
            info = UNFINISHED if number else root_info
            spans.append((number, parent, name, started, now, text, info))
        return self._ids, tuple(spans)

    def _take(self, number: int, info: str) -> None:
        # the task that created this one may have closed it
        found = self._running.get(number)
        if found is None:
            return
        parent, name, started, text = found
        if len(self._spans) < SPAN_LIMIT:
            self._spans.append((number, parent, name, started, monotonic_ns(), text, info))
        else:
            self.cut += 1
        self._running.pop(number, None)
