"""Traces in the formats of other tools: folded stacks for flame graphs, Chrome's trace events.

Formats: https://github.com/brendangregg/FlameGraph (stackcollapse) and the Trace Event Format,
which Perfetto and chrome://tracing read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from osbench.coordinator.traces.collection.trace_set import TraceSet
from osbench.coordinator.traces.model.spans import Trace, uuid_form
from osbench.coordinator.traces.model.tree import Tree, label


def folded(trace_set: TraceSet, traces: Iterable[Trace]) -> Iterator[str]:
    """One line per stack of spans: labels separated by `;`, and microseconds on critical paths.

    Time spent waiting for the start of a span is a frame on top of it. All lines sum to the
    durations of the traces.
    """
    sums: dict[str, int] = {}
    for trace in traces:
        tree, paths = trace_set.tree_and_paths(trace)
        stacks: dict[int, str] = {}
        for path in paths:
            # a span is visited after the one around it
            for at in path.visited:
                # the format has no escape character
                frame = label(tree.spans[at]).replace(";", ",").replace("\n", " ")
                above = stacks.get(tree.parent[at])
                stacks[at] = f"{above};{frame}" if above else frame
            for segment in path.segments:
                stack = stacks[segment.span]
                if segment.awaited >= 0:
                    stack = f"{stacks[segment.awaited]};(waited for)"
                sums[stack] = sums.get(stack, 0) + segment.end - segment.start
    for stack in sorted(sums):
        yield f"{stack} {round(sums[stack] / 1000)}"


def chrome(trace_set: TraceSet, traces: Iterable[Trace]) -> dict[str, Any]:
    """Trace events with a process per service and host, and a thread per trace in it."""
    events: list[dict[str, Any]] = []
    processes: dict[tuple[str, str], int] = {}
    threads = 0
    for trace in traces:
        tree, paths = trace_set.tree_and_paths(trace)
        critical = {at for path in paths for at in path.visited}
        lanes = _Lanes(threads)
        for at in sorted(_inside(tree), key=lambda at: (tree.start[at], -tree.end[at])):
            span = tree.spans[at]
            owner = (span.service, span.host)
            if owner not in processes:
                processes[owner] = len(processes) + 1
                name = f"{span.service} on {span.host}" if span.host else span.service
                events.append(_named("process_name", processes[owner], 0, name))
            lane, is_new = lanes.take(processes[owner], tree.start[at], tree.end[at])
            if is_new:
                name = uuid_form(trace.trace_id)
                events.append(_named("thread_name", processes[owner], lane, name))
            events.append(
                {
                    "ph": "X",
                    "name": span.name,
                    "cat": "critical path" if at in critical else "other",
                    "pid": processes[owner],
                    "tid": lane,
                    "ts": tree.start[at] / 1000,
                    "dur": (tree.end[at] - tree.start[at]) / 1000,
                    "args": {
                        "detail": span.detail,
                        "trace": uuid_form(trace.trace_id),
                        **({"error": span.error} if span.error else {}),
                    },
                }
            )
        threads = lanes.last
    return {"traceEvents": events, "displayTimeUnit": "ms"}


class _Lanes:
    """Assigns the spans of one trace to threads so that those in a thread nest or are disjoint."""

    def __init__(self, last: int) -> None:
        self.last = last
        self._open: dict[int, list[tuple[int, list[int]]]] = {}

    def take(self, process: int, start: int, end: int) -> tuple[int, bool]:
        lanes = self._open.setdefault(process, [])
        for lane, ends in lanes:
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or ends[-1] >= end:
                ends.append(end)
                return lane, False
        self.last += 1
        lanes.append((self.last, [end]))
        return self.last, True


def _inside(tree: Tree) -> list[int]:
    return [at for root in tree.roots for at in tree.below(root)]


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
