"""The wait graph of a trace: which event waited for which, to replay it with shorter spans.

A span starts after all siblings that had ended by then, and ends after all its children. So its
self time lies on the edges between these events, and the end of the root is the longest path. If
spans get shorter, the longest path may lead through another branch. This is the replay of COZ
(Curtsinger and Berger, SOSP 2015) and of the Mystery Machine (Chow et al., OSDI 2014, section 4),
for the tree of one trace.

Without parallel branches there is one path, which the critical path has already.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.critical_path import PathSegment, is_call, slack_of
from osbench.edges.traces.model.tree import Tree

Floats = NDArray[np.float64]

#: Place of time that stays as it is: pauses, and corrections of clocks.
FIXED = -1


@dataclass(slots=True)
class _Event:
    """A start or an end of a span, or a meeting of several events.

    `after` has the positions of the awaited events. The event happens the time of all its `parts`
    after the last of them.
    """

    after: list[int]
    #: Place (a number under which time is counted) and nanoseconds.
    parts: list[tuple[int, int]]


@dataclass(slots=True)
class _Frame:
    """A span of the graph under construction: children not added yet, running ones, ended ones.

    Times are nanoseconds, events are positions in the graph.
    """

    at: int
    low: int
    high: int
    #: The event of its start.
    entry: int
    #: Begin, end and position of the children, last first.
    children: list[tuple[int, int, int]]
    #: Children that are running: end and its event.
    running: list[tuple[int, int]] = field(default_factory=list)
    #: Events of ended children that no ended child waited for, with the times of their ends.
    ended: dict[int, int] = field(default_factory=dict)
    #: The events that each child's start waited for, by the event of its end.
    waited: dict[int, tuple[int, ...]] = field(default_factory=dict)
    #: Events that starts wait for together, and the event of the last of them.
    joined: tuple[int, ...] = ()
    join: int = -1


class WaitGraph:
    """Wait graph of a trace: events in an order in which each follows all events that it waits for.

    The first is the start of the root, the last its end.
    """

    def __init__(
        self, tree: Tree, root: int, clocks: Clocks, place: Callable[[PathSegment], int]
    ) -> None:
        """Build the graph below the span at position `root`.

        `place` returns the number under which a segment's time is counted; `FIXED` if no change
        makes it shorter.
        """
        self._tree = tree
        self._clocks = clocks
        self._place = place
        self._events = [_Event([], [])]
        self._build(root)

    def packed(self) -> array[int]:
        """Return the events as integers, for `replayed_durations`.

        Each event is: number of awaited events, their positions, number of parts, then place and
        nanoseconds of each part.
        """
        found = array("q")
        for event in _merged_events(self._events):
            found.append(len(event.after))
            found.extend(event.after)
            found.append(len(event.parts))
            for part in event.parts:
                found.extend(part)
        return found

    def _build(self, root: int) -> None:
        tree = self._tree
        stack = [self._frame(root, tree.start[root], tree.end[root], 0)]
        while stack:
            frame = stack[-1]
            if frame.children:
                stack.append(self._enter(frame, *frame.children.pop()))
                continue
            stack.pop()
            end = self._end(frame)
            if stack:
                outer = stack[-1]
                outer.waited[end] = outer.waited.pop(frame.entry)
                heapq.heappush(outer.running, (frame.high, end))

    def _frame(self, at: int, low: int, high: int, entry: int) -> _Frame:
        children = sorted(waited_for(self._tree, at, low, high, self._clocks), reverse=True)
        return _Frame(at=at, low=low, high=high, entry=entry, children=children)

    def _enter(self, frame: _Frame, begin: int, end: int, inner: int) -> _Frame:
        """Add the event of a child's start, which waits for the siblings that have ended.

        `frame`: the parent. `begin`, `end`: of the child, nanoseconds. Returns the frame of the
        child.
        """
        slack = slack_of(self._tree, frame.at, inner, frame.high - frame.low, self._clocks)
        while frame.running and ends_before(frame.running[0][0], begin, end, slack):
            self._settle(frame)
        after = self._joined(frame)
        last = max(frame.ended.values(), default=frame.low)
        awaited = inner if is_call(self._tree, frame.at, inner) else -1
        entry = self._event(after, PathSegment(frame.at, awaited, last, begin))
        frame.waited[entry] = tuple(frame.ended)
        return self._frame(inner, begin, end, entry)

    def _end(self, frame: _Frame) -> int:
        """Add the event of a span's end, which waits for all its children; return its position.

        Children that still run in `frame` are ended first.
        """
        while frame.running:
            self._settle(frame)
        after = self._joined(frame)
        last = max(frame.ended.values(), default=frame.low)
        return self._event(after, PathSegment(frame.at, -1, last, frame.high))

    def _joined(self, frame: _Frame) -> int:
        """Return the position of an event that waits for all ended children of a frame.

        Without ended children it is the start of the span, with one the end of that child. For
        several an event is added; starts that wait for the same children share it.
        """
        ended = tuple(frame.ended)
        if len(ended) < 2:
            return ended[0] if ended else frame.entry
        if frame.joined != ended:
            self._events.append(_Event(list(ended), []))
            frame.joined, frame.join = ended, len(self._events) - 1
        return frame.join

    def _settle(self, frame: _Frame) -> None:
        """Move the running child of a frame that ends first to its ended children.

        It replaces the ended children that its start waited for.
        """
        end, event = heapq.heappop(frame.running)
        for earlier in frame.waited.pop(event):
            frame.ended.pop(earlier, None)
        frame.ended[event] = end

    def _event(self, after: int, segment: PathSegment) -> int:
        length = segment.end - segment.start
        # below 0 if clocks are not read at the same time
        place = self._place(segment) if length > 0 else FIXED
        self._events.append(_Event([after], [(place, length)] if length else []))
        return len(self._events) - 1


def has_branches(tree: Tree, root: int, clocks: Clocks) -> bool:
    """Return whether the span at position `root`, or any below, waited for children side by side.

    False means that the critical path is the only path.
    """
    waiting = [(root, tree.start[root], tree.end[root])]
    while waiting:
        at, low, high = waiting.pop()
        last = low
        for begin, end, inner in sorted(waited_for(tree, at, low, high, clocks)):
            slack = slack_of(tree, at, inner, high - low, clocks)
            if not ends_before(last, begin, end, slack):
                return True
            last = max(last, end)
            waiting.append((inner, begin, end))
    return False


def waited_for(
    tree: Tree, at: int, low: int, high: int, clocks: Clocks
) -> list[tuple[int, int, int]]:
    """Return (begin, end, position) of the children that the span `at` waited for, unsorted.

    Times are limited to `low` and `high`, nanoseconds; children outside, or that end later than
    `high` by more than the tolerance, are left out.
    """
    found = []
    for inner in tree.children[at]:
        slack = slack_of(tree, at, inner, high - low, clocks)
        begin, end = max(tree.start[inner], low), min(tree.end[inner], high)
        if tree.end[inner] <= high + slack and begin < end:
            found.append((begin, end, inner))
    return found


def ends_before(earlier: int, begin: int, end: int, slack: int) -> bool:
    """Return whether a span from `begin` to `end` may have waited for another, ended at `earlier`.

    As clocks have errors, `earlier` may be later than `begin`, by `slack` nanoseconds or half the
    length of the span, if that is less.
    """
    return earlier <= begin + min(slack, (end - begin) // 2)


def replayed_durations(packed: NDArray[np.int64], left: Floats) -> Floats:
    """Return the durations of a packed graph, nanoseconds, one for each column of `left`.

    `left` has a row per place and a column per scenario: the fraction (0 to 1) of the time that is
    left. Its last row, for `FIXED`, is 1. The result is at least 0: corrections of clocks keep
    their length. Raises IndexError if the graph is damaged.
    """
    numbers = packed.tolist()
    values: list[Floats] = []
    at = 0
    while at < len(numbers):
        after = numbers[at + 1 : at + 1 + numbers[at]]
        at += 1 + len(after)
        count = max(numbers[at], 0)
        value = np.zeros(left.shape[1])
        if after:
            value = values[after[0]]
            for other in after[1:]:
                value = np.maximum(value, values[other])
        for part in range(at + 1, at + 1 + 2 * count, 2):
            value = value + left[numbers[part]] * numbers[part + 1]
        at += 1 + 2 * count
        values.append(value)
    return np.maximum(values[-1], 0.0)


def _merged_events(events: list[_Event]) -> list[_Event]:
    """Return new events, each merged into the only event it waits for if no other waits for that.

    The order remains; positions in `after` are of the new list.
    """
    waiting = [0] * len(events)
    for event in events:
        for earlier in event.after:
            waiting[earlier] += 1
    merged: list[_Event] = []
    number: list[int] = []
    for event in events:
        if len(event.after) == 1 and waiting[event.after[0]] == 1:
            at = number[event.after[0]]
            parts = dict(merged[at].parts)
            for place, length in event.parts:
                parts[place] = parts.get(place, 0) + length
            merged[at].parts = list(parts.items())
            number.append(at)
            continue
        number.append(len(merged))
        merged.append(_Event([number[one] for one in event.after], list(event.parts)))
    return merged
