"""The spans of one trace as rows with their times, for text and JSON output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.edges.traces.analysis.ranking import own_ns
from osbench.edges.traces.model.critical_path import Path
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP, STEPPED, joined_words
from osbench.edges.traces.model.tree import Tree, label

_MARKS = (
    (LOST_STOP, "stop lost"),
    (LOST_START, "start lost"),
    (STEPPED, "clock stepped"),
)


@dataclass(frozen=True, kw_only=True)
class SpanRow:
    """A span of a trace as a row of a tree, for text and JSON.

    Times are seconds; `start_s` counts from the start of the trace.
    """

    depth: int
    span_id: str
    parent_id: str
    name: str
    service: str
    host: str
    detail: str
    start_s: float
    duration_s: float
    #: Without the spans within it; and the part of its self time on the critical path.
    self_s: float
    critical_s: float
    #: How long its caller waited for its start, on the critical path.
    waited_s: float
    #: It is on the critical path.
    on_path: bool
    #: It continued after the span around it had ended.
    outlives: bool
    error: str
    marks: tuple[str, ...]

    @property
    def label(self) -> str:
        """Service, name and detail, as `joined_words`."""
        return joined_words(self.service, self.name, self.detail)


def duration_s(tree: Tree) -> float:
    """Return the seconds from first start to last end of a trace's roots; 0.0 without roots.

    If the trace has the root of an iteration, only that root counts. Work that continued after the
    end is not included.
    """
    roots = tree.roots if tree.iteration is None else (tree.iteration,)
    if not roots:
        return 0.0
    return (max(map(tree.end.__getitem__, roots)) - min(map(tree.start.__getitem__, roots))) / 1e9


def rows_of(tree: Tree, paths: Sequence[Path]) -> Iterator[SpanRow]:
    """Yield a row for each span of a trace that is not left out, in tree order.

    Siblings are ordered by start. Yields none without roots.
    """
    if not tree.roots:
        return
    times = _PathTimes(paths)
    zero = min(tree.start[root] for root in tree.roots)
    waiting = [(root, 0) for root in sorted(tree.roots, key=tree.start.__getitem__, reverse=True)]
    while waiting:
        at, depth = waiting.pop()
        yield row_of(tree, at, zero, depth, times)
        inner = sorted(tree.children[at], key=tree.start.__getitem__, reverse=True)
        waiting += [(child, depth + 1) for child in inner]


class _PathTimes:
    """Own and waiting nanoseconds on critical paths (`own`, `waited`) by position of the span.

    Also the positions of spans on the paths, and of spans that outlived their parent.
    """

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self.own: dict[int, int] = {}
        self.waited: dict[int, int] = {}
        for path in paths:
            for segment in path.segments:
                is_own = segment.awaited < 0
                target, at = (self.own, segment.span) if is_own else (self.waited, segment.awaited)
                target[at] = target.get(at, 0) + segment.end - segment.start
        self.visited = {at for path in paths for at in path.visited}
        self.outlived = {at for path in paths for at in path.outlived}


def row_of(
    tree: Tree, at: int, zero: int, depth: int = 0, times: _PathTimes | None = None
) -> SpanRow:
    """Return the row of the span at position `at`.

    `zero` is the start of the trace, nanoseconds since 1970; `depth` is 0 for a root. Without
    `times` nothing is on the critical path.
    """
    span = tree.spans[at]
    times = times or _PathTimes()
    return SpanRow(
        depth=depth,
        span_id=span.span_id,
        parent_id=span.parent_id,
        name=span.name,
        service=span.service,
        host=span.host,
        detail=span.detail,
        start_s=(tree.start[at] - zero) / 1e9,
        duration_s=(tree.end[at] - tree.start[at]) / 1e9,
        self_s=own_ns(tree, at) / 1e9,
        critical_s=times.own.get(at, 0) / 1e9,
        waited_s=times.waited.get(at, 0) / 1e9,
        on_path=at in times.visited,
        outlives=at in times.outlived,
        error=span.error,
        marks=tuple(word for mark, word in _MARKS if span.marks & mark),
    )


def left_out(tree: Tree) -> list[dict[str, Any]]:
    """Return the spans that were left out of a tree, with the keys span, host and why.

    In the order of positions; `span` is the label, `why` is "orphan" or "stale".
    """
    return [
        {"span": label(tree.spans[at]), "host": tree.spans[at].host, "why": why}
        for at, why in sorted(tree.left_out.items())
    ]
