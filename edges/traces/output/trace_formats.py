"""Traces in the formats of other tools: folded stacks for flame graphs, Chrome's trace events.

Formats: https://github.com/brendangregg/FlameGraph (stackcollapse) and the Trace Event Format,
which Perfetto and chrome://tracing read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from osbench.edges.traces.collection.trace_set import TraceSet
from osbench.edges.traces.model.spans import Trace, uuid_form
from osbench.edges.traces.model.tree import Tree, label


def folded_stacks(trace_set: TraceSet, traces: Iterable[Trace]) -> Iterator[str]:
    """Yield a line per stack of spans: labels from the root, and microseconds on critical paths.

    Labels are separated by `;`. Time spent waiting for the start of a span is a frame on top of it.
    Apart from rounding, all lines sum to the durations of the roots. Lines are sorted by stack.
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
    """Return the spans of traces as an object in the Trace Event Format of Chrome.

    There is a process per service, and a thread per host and trace. Spans of a host that overlap
    without nesting are on further threads, as the format demands. Times are microseconds from the
    first span: since 1970 they would have too many digits for JSON.
    """
    events: list[dict[str, Any]] = []
    processes: dict[str, int] = {}
    threads = 0
    found = [(trace, *trace_set.tree_and_paths(trace)) for trace in traces]
    begin = min((tree.start[at] for _, tree, _ in found for at in _inside(tree)), default=0)
    for trace, tree, paths in found:
        critical = {at for path in paths for at in path.visited}
        lanes = _Lanes(threads)
        for at in sorted(_inside(tree), key=lambda at: (tree.start[at], -tree.end[at])):
            span = tree.spans[at]
            if span.service not in processes:
                processes[span.service] = len(processes) + 1
                events.append(
                    _metadata_event("process_name", processes[span.service], 0, span.service)
                )
            process = processes[span.service]
            lane, number = lanes.take((process, span.host), tree.start[at], tree.end[at])
            if number:
                name = span.host or "unknown host"
                name += f" ({number})" if number > 1 else ""
                name += f", {uuid_form(trace.trace_id)}" if len(found) > 1 else ""
                events.append(_metadata_event("thread_name", process, lane, name))
            events.append(
                {
                    "ph": "X",
                    "name": span.name,
                    "cat": "critical path" if at in critical else "other",
                    "pid": process,
                    "tid": lane,
                    "ts": (tree.start[at] - begin) / 1000,
                    "dur": (tree.end[at] - tree.start[at]) / 1000,
                    "args": {
                        "detail": span.detail,
                        "trace": uuid_form(trace.trace_id),
                        **({"error": span.error} if span.error else {}),
                    },
                }
            )
        threads = lanes.last
    since = {"begin_ns_since_1970": str(begin)} if found else {}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": since}


class _Lanes:
    """Assigns the spans of one trace to threads so that spans of a thread nest or are disjoint.

    Threads are numbered on from `last`.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self._open: dict[tuple[int, str], list[tuple[int, list[int]]]] = {}

    def take(self, owner: tuple[int, str], start: int, end: int) -> tuple[int, int]:
        """Return (thread of the next span, its number within `owner` if the thread is new, else 0).

        `owner` is process and host. `start` and `end` are of the span. Spans must come in order of
        start, longer ones first.
        """
        lanes = self._open.setdefault(owner, [])
        for lane, ends in lanes:
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or ends[-1] >= end:
                ends.append(end)
                return lane, 0
        self.last += 1
        lanes.append((self.last, [end]))
        return self.last, len(lanes)


def _inside(tree: Tree) -> list[int]:
    return [at for root in tree.roots for at in tree.below(root)]


def _metadata_event(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
