"""A trace as a tree of spans with corrected clocks; spans that do not belong to it are left out."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.spans import LOST_STOP, Span, Trace, joined_words

#: Name of the root span of an iteration.
ITERATION = "osbench.iteration"

#: Reasons to leave out a span: its parent is missing; it is work of another request.
ORPHAN, STALE = "orphan", "stale"


class Tree:
    """A trace as a tree of spans, with times by the clock of their root's host.

    Spans have their position in `Trace.spans`. Spans that no root reaches are in `left_out` as
    `ORPHAN`.
    """

    __slots__ = (
        *("children", "end", "headless", "left_out", "parent", "roots", "spans", "start"),
        "trace_id",
    )

    def __init__(self, trace: Trace, clocks: Clocks, *, any_root: bool = False) -> None:
        """Link the spans to a tree, convert their times, and leave out spans that no root reaches.

        `clocks` has the offsets. `any_root`: if the trace has no root span, the spans whose parent
        is missing are its roots. Spans without a stop end with their last child.
        """
        self.trace_id = trace.trace_id
        self.spans = trace.spans
        count = len(trace.spans)
        #: Nanoseconds since 1970.
        self.start = [span.start_ns for span in trace.spans]
        self.end = [span.start_ns + span.duration_ns for span in trace.spans]
        self.children: list[list[int]] = [[] for _ in range(count)]
        #: Position of the span around each; -1 for roots.
        self.parent = [-1] * count
        self.roots: list[int] = []
        #: Reasons to leave out spans, by position.
        self.left_out: dict[int, str] = {}
        self._link()
        #: Whether the parents of its roots are missing.
        self.headless = any_root and not self.roots
        if self.headless:
            self.roots = [at for at, parent in enumerate(self.parent) if parent < 0]
        reached = list(self._correct(clocks))
        if len(reached) < count:
            self.left_out = dict.fromkeys(set(range(count)).difference(reached), ORPHAN)
        self._close(reached)

    @property
    def iteration(self) -> int | None:
        """Position of the first root span named `ITERATION`; None if there is none."""
        return next((at for at in self.roots if self.spans[at].name == ITERATION), None)

    def below(self, top: int) -> Iterator[int]:
        """Yield the position `top` and the positions of spans below, each before its children."""
        waiting = [top]
        while waiting:
            at = waiting.pop()
            yield at
            waiting += reversed(self.children[at])

    def leave_out(self, top: int, why: str) -> None:
        """Remove the span at `top` and all spans below it; note `why` for each in `left_out`."""
        for at in self.below(top):
            self.left_out[at] = why
        if self.parent[top] >= 0:
            self.children[self.parent[top]].remove(top)
        else:
            self.roots.remove(top)

    def _link(self) -> None:
        place = {span.span_id: at for at, span in enumerate(self.spans)}
        for at, span in enumerate(self.spans):
            if not span.parent_id:
                self.roots.append(at)
                continue
            parent = place.get(span.parent_id, -1)
            self.parent[at] = parent
            if parent >= 0 and parent != at:
                self.children[parent].append(at)

    def _correct(self, clocks: Clocks) -> Iterator[int]:
        """Convert `start` and `end` of spans to the clocks of the roots' hosts, in place.

        Yields the positions of all spans that a root reaches, parents first.
        """
        spans, children = self.spans, self.children
        waiting = [(root, 0) for root in self.roots]
        while waiting:
            at, shift = waiting.pop()
            yield at
            if shift:
                self.start[at] += shift
                self.end[at] += shift
            host = spans[at].host
            for inner in children[at]:
                other = spans[inner].host
                if other == host or not other or not host:
                    waiting.append((inner, shift))
                else:
                    waiting.append((inner, shift + clocks.add_ns(spans[at], spans[inner])))

    def _close(self, reached: list[int]) -> None:
        """Extend spans whose stop was lost to the latest end of their children, in place.

        `reached` has the positions of spans, parents before children.
        """
        if not any(span.marks & LOST_STOP for span in self.spans):
            return
        for at in reversed(reached):
            if self.spans[at].marks & LOST_STOP:
                ends = [self.end[inner] for inner in self.children[at]]
                self.end[at] = max([self.end[at], *ends])


def label(span: Span) -> str:
    """Return service, name and detail of a span as text, as `joined_words`."""
    return joined_words(span.service, span.name, span.detail)
