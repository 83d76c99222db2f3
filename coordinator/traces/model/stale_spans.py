"""Spans that a service wrote into the wrong trace: its threads kept an old one.

OSProfiler keeps its state by thread. A service that serves requests from a pool and does not
clean up writes whatever a thread does later into the first trace that the thread has seen. Such
work begins after the call it is said to be part of was answered. So does work that a service
goes on with after its reply, but of that every trace has about as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from osbench.coordinator.traces.model.spans import Span, Trace
from osbench.coordinator.traces.model.tree import STALE, Tree

#: Who did what about what: calls of a service differ in what they go on with after their reply.
_Outer = tuple[str, str, str]
#: Who did what.
_Inner = tuple[str, str]

#: Kinds that are counted; services that make up names from data would fill the memory.
KINDS = 10_000

#: How many late spans of the second kind one of the first kind usually has.
Usual = Mapping[tuple[_Outer, _Inner], int]


class LateWork:
    """How much work usually begins after the span around it has ended."""

    def __init__(self) -> None:
        #: Spans of a kind, and how many of them had so much late work of another kind.
        self._spans: Counter[_Outer] = Counter()
        self._late: dict[tuple[_Outer, _Inner], Counter[int]] = {}

    def add(self, trace: Trace) -> None:
        """Count the late work of one trace, by the clocks as they are."""
        known = {span.span_id: span for span in trace.spans}
        late: Counter[tuple[str, _Inner]] = Counter()
        for span in trace.spans:
            whose = _outer(span)
            if whose in self._spans or len(self._spans) < KINDS:
                self._spans[whose] += 1
            outer = known.get(span.parent_id)
            if outer is not None and span.start_ns > outer.start_ns + outer.duration_ns:
                late[outer.span_id, (span.service, span.name)] += 1
        for (span_id, kind), count in late.items():
            kinds = (_outer(known[span_id]), kind)
            # what is not counted is not usual either
            if kinds in self._late or (kinds[0] in self._spans and len(self._late) < KINDS):
                self._late.setdefault(kinds, Counter())[count] += 1

    def usual(self) -> Usual:
        """The median number of late spans of a kind within those of another, unless it is 0."""
        medians = {(outer, inner): self._median(outer, inner) for outer, inner in self._late}
        return {kinds: number for kinds, number in medians.items() if number}

    def _median(self, outer: _Outer, inner: _Inner) -> int:
        counts = self._late[outer, inner]
        below = self._spans[outer] - sum(counts.values())
        found = 0
        for number in sorted(counts):
            if below >= self._spans[outer] / 2:
                break
            found = number
            below += counts[number]
        return found


def leave_out_stale(tree: Tree, root: int, usual: Usual, grace_s: float) -> None:
    """Take stale spans out of a tree.

    Stale is late work of which there is more than twice the usual, but for the first of it where
    nothing of its kind was in time, and all that begins `grace_s` seconds after the root's end.
    """
    limit = tree.end[root] + round(grace_s * 1e9)
    for at in list(tree.below(root)):
        if at in tree.left_out or not tree.children[at]:
            continue
        outer = _outer(tree.spans[at])
        for kind, late in _late(tree, at).items():
            expected = usual.get((outer, kind), 0)
            late.sort(key=lambda inner: (tree.start[inner], inner))
            kept = len(late)
            if len(late) > 2 * expected + 1:
                kept = max(expected, 0 if _in_time(tree, at, kind) else 1)
            for number, inner in enumerate(late):
                if number >= kept or tree.start[inner] > limit:
                    tree.leave_out(inner, STALE)


def _outer(span: Span) -> _Outer:
    return span.service, span.name, span.detail


def _late(tree: Tree, at: int) -> dict[_Inner, list[int]]:
    end = tree.end[at]
    found: dict[_Inner, list[int]] = {}
    for inner in tree.children[at]:
        if tree.start[inner] > end:
            span = tree.spans[inner]
            found.setdefault((span.service, span.name), []).append(inner)
    return found


def _in_time(tree: Tree, at: int, kind: _Inner) -> bool:
    return any(
        tree.start[inner] <= tree.end[at]
        and (tree.spans[inner].service, tree.spans[inner].name) == kind
        for inner in tree.children[at]
    )
