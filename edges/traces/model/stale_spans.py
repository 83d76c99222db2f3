"""Detects spans that a service wrote into the wrong trace, because its threads kept an old one.

OSProfiler's state is thread-local. A service that serves requests from a thread pool and does not
reset it writes later work of a thread into the first trace that the thread has seen. Such work
starts after the end of the call around it. So does work that a service continues after its reply,
but that occurs about equally in every trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from osbench.edges.traces.model.spans import Span, Trace
from osbench.edges.traces.model.tree import STALE, Tree

#: Service, name and detail: calls of a service differ in their work after the reply.
_Outer = tuple[str, str, str]
#: Service and name.
_Inner = tuple[str, str]

#: Limit on counted kinds, because some services build names from data.
KINDS = 10_000

#: Usual number of late spans of the second kind within a span of the first kind.
Usual = Mapping[tuple[_Outer, _Inner], int]


class LateWork:
    """Counts late spans, which start after the end of their parent, by kinds of parent and span.

    Kind of a parent: service, name and detail. Kind of a late span: service and name.
    """

    def __init__(self) -> None:
        #: Number of spans by kind, and distribution of late spans by pair of kinds.
        self._spans: Counter[_Outer] = Counter()
        self._late: dict[tuple[_Outer, _Inner], Counter[int]] = {}

    def add(self, trace: Trace) -> None:
        """Count the spans and late spans of one trace, by uncorrected clocks.

        New kinds above `KINDS` are not counted.
        """
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
            # uncounted outer kinds have no usual number
            if kinds in self._late or (kinds[0] in self._spans and len(self._late) < KINDS):
                self._late.setdefault(kinds, Counter())[count] += 1

    def usual(self) -> Usual:
        """Return the usual (median) number of late spans, by kinds of parent and late span.

        Parents without late spans count as 0. Pairs of kinds whose median is 0 are missing.
        """
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
    """Remove stale spans below `root` from `tree`, with all spans below them, in place.

    A span is late if it starts after the end of its parent. If a parent has more late spans of a
    kind than twice the `usual` number plus one, all after the usual number are stale, except the
    first one if no span of its kind was in time. Late spans that start more than `grace_s` seconds
    after the root's end are stale in any case. `left_out` has them as `STALE`.
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
