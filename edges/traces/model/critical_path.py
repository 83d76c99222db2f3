"""The critical path of a trace, as a partition of the root's time, and the pauses on it.

Walking back from a span's end, the span waited for the child that ended last before that time;
before that child's start it waited for the child that ended last before then, and so on. The time
between these children is the span's self time. So every nanosecond of the root is assigned to
exactly one span, and the parts sum to the whole. The walk is that of CRISP (Zhang et al., USENIX
ATC 2022, section 3), but self times are segments: CRISP subtracts, and loses time if children
overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from osbench.common.plugin.atomic import PAUSE
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.tree import Tree

#: Fraction of a span by which a child may end after it and count as in time: clocks are not read
#: at the same time.
_TOLERANCE = 0.01


class PathSegment(NamedTuple):
    """A period on a critical path that counts for one span, in nanoseconds since 1970.

    The span did own work then, or waited for the start of the span `awaited`.
    """

    #: Position of the span that the time is assigned to.
    span: int
    #: Position of the span for whose start it waited; -1 if it did its own work.
    awaited: int
    #: Nanoseconds since 1970 by the root's clock.
    start: int
    end: int


class Path(NamedTuple):
    """Critical path of a root span: segments that together cover its duration.

    Spans are given as positions in their tree.
    """

    #: Unordered; their lengths sum to the root's duration.
    segments: list[PathSegment]
    #: Spans on the path, including spans without self time on it.
    visited: list[int]
    #: Spans that continued after the span around them had ended and so were not waited for.
    outlived: list[int]


def critical_path(tree: Tree, root: int, clocks: Clocks) -> Path:
    """Return the critical path of a root span: its time, divided among the spans that caused it.

    `root` is its position in the tree. The lengths of the segments sum to the root's duration. A
    child may end after its parent by 1 % of its time, or by the error of `clocks` if that is more.
    """
    segments: list[PathSegment] = []
    visited: list[int] = []
    outlived: list[int] = []
    waiting = [(root, tree.start[root], tree.end[root])]
    while waiting:
        at, low, high = waiting.pop()
        visited.append(at)
        now, following = high, -1
        for inner in _last_first(tree, at):
            slack = slack_of(tree, at, inner, high - low, clocks)
            if tree.end[inner] > tree.end[at] + slack:
                outlived.append(inner)
                continue
            # a child that was still running when the next one started was not waited for
            if tree.end[inner] > now + slack:
                continue
            begin, end = max(tree.start[inner], low), min(tree.end[inner], now)
            if begin >= now or end <= low:
                continue
            if end < now:
                segments.append(PathSegment(at, following, end, now))
            waiting.append((inner, begin, end))
            now, following = begin, inner if is_call(tree, at, inner) else -1
        if now > low:
            segments.append(PathSegment(at, following, low, now))
    return Path(segments, visited, outlived)


def _last_first(tree: Tree, at: int) -> list[int]:
    children = tree.children[at]
    if len(children) < 2:
        return children
    return sorted(children, key=lambda inner: (tree.end[inner], tree.start[inner]), reverse=True)


def slack_of(tree: Tree, at: int, inner: int, length: int, clocks: Clocks) -> int:
    """Return by how many nanoseconds a child may end after its span and still count as within it.

    `at` and `inner`: positions of span and child. `length`: nanoseconds of the examined part of the
    span. The result is 1 % of `length`, or the length of the rest of the span if that is more; for
    another host at least the error of the clocks.
    """
    slack = max(int(length * _TOLERANCE), tree.end[at] - tree.start[at] - length)
    host, other = tree.spans[at].host, tree.spans[inner].host
    return slack if host == other else max(slack, clocks.error_ns(host, other))


def is_call(tree: Tree, at: int, inner: int) -> bool:
    """Return whether time of span `at` before its child `inner` was a wait for another service.

    True if the child has another service or host, and span `at` either is of kind client or
    producer or has no other child: between several requests a span may do any other work.
    """
    span, other = tree.spans[at], tree.spans[inner]
    if span.service == other.service and span.host == other.host:
        return False
    return span.kind in ("client", "producer") or len(tree.children[at]) == 1


def is_pause(tree: Tree, at: int) -> bool:
    """Return whether the span at a position is a pause of the scenario (think time)."""
    return tree.spans[at].name == PAUSE


def paused_within(tree: Tree) -> dict[int, int]:
    """Return how many nanoseconds of pauses (think time) each span contains, by its position.

    A pause contains itself; overlapping pauses are added up. Spans without pauses are missing.
    Pauses that were left out of the tree do not count.
    """
    found: dict[int, int] = {}
    for at in range(len(tree.spans)):
        if not is_pause(tree, at) or at in tree.left_out:
            continue
        length = tree.end[at] - tree.start[at]
        around = at
        while around >= 0:
            found[around] = found.get(around, 0) + length
            around = tree.parent[around]
    return found


def paused_on(tree: Tree, path: Path) -> int:
    """Return how many nanoseconds of a critical path are pauses of the scenario."""
    return sum(one.end - one.start for one in path.segments if is_pause(tree, one.span))
