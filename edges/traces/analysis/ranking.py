"""Ranks trace points (kinds of spans, by service and name) by their time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from osbench.common.values.histogram import Histogram
from osbench.coordinator.formatting import plain
from osbench.edges.traces.model.critical_path import Path, is_pause, paused_within
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP
from osbench.edges.traces.model.tree import Tree

#: Limit on distinct trace points, because some services build names from data.
NAMES = 10_000
OTHER = "(other)"

_OPEN = LOST_START | LOST_STOP
_WAITING = 4096


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """Figures of one trace point, that is of all spans with one service and name in a run.

    Times are seconds, without pauses of the scenario. Made by `Ranking.rows`.
    """

    name: str
    #: Number of occurrences, and of traces with it.
    count: int
    traces: int
    #: From start to stop, including all calls within.
    total_s: float
    max_s: float
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    #: Total without calls within, and the part of that on critical paths.
    self_s: float
    critical_s: float
    #: Its service; "" if not known, as in rankings of earlier versions.
    service: str = ""
    #: Pauses of the scenario within, which the times above leave out.
    paused_s: float = 0.0


class _Point:
    __slots__ = (
        *("critical_ns", "durations", "histogram", "last", "paused_ns", "self_ns", "traces"),
    )

    def __init__(self) -> None:
        self.durations: list[int] = []
        self.histogram = Histogram()
        self.self_ns = self.critical_ns = self.paused_ns = 0
        self.traces = 0
        self.last = ""

    def settle(self) -> None:
        self.histogram.add(np.array(self.durations, np.int64))
        self.durations.clear()


class Ranking:
    """Sums the times of all spans by trace point (service and name); memory is bounded.

    Above `NAMES` trace points, new ones are counted together as `OTHER`.
    """

    def __init__(self) -> None:
        self._points: dict[tuple[str, str], _Point] = {}
        #: Number of the scenario's pauses, and their nanoseconds.
        self.pauses = self.paused_ns = 0

    def add(self, tree: Tree, paths: Iterable[Path]) -> None:
        """Add the spans of a trace, and the time of its critical paths (`paths`) by trace point.

        Spans whose start or stop was lost count only on critical paths, left-out spans not at all.
        Pauses of the scenario are counted separately, and not in the times of spans around them.
        """
        paused = paused_within(tree)
        for at, span in enumerate(tree.spans):
            if span.marks & _OPEN or at in tree.left_out:
                continue
            if is_pause(tree, at):
                self.pauses += 1
                self.paused_ns += span.duration_ns
                continue
            point = self._point(span.service, span.name)
            inside = paused.get(at, 0)
            point.durations.append(max(span.duration_ns - inside, 0))
            point.paused_ns += inside
            if len(point.durations) >= _WAITING:
                point.settle()
            point.self_ns += own_ns(tree, at)
            if point.last != tree.trace_id:
                point.last = tree.trace_id
                point.traces += 1
        for path in paths:
            for segment in path.segments:
                if is_pause(tree, segment.span):
                    continue
                span = tree.spans[segment.span]
                point = self._point(span.service, span.name)
                point.critical_ns += segment.end - segment.start

    def rows(self) -> list[Ranked]:
        """Return the figures of all trace points so far, largest total time first.

        Equal times are in the order of first occurrence. Trace points without a whole span are
        left out.
        """
        found = []
        for (service, name), point in self._points.items():
            point.settle()
            times = point.histogram
            if times.count:
                found.append(
                    Ranked(
                        service=service,
                        name=name,
                        count=times.count,
                        traces=point.traces,
                        total_s=times.sum / 1e9,
                        max_s=times.max / 1e9,
                        mean_s=times.sum / times.count / 1e9,
                        p50_s=times.percentile(50) / 1e9,
                        p95_s=times.percentile(95) / 1e9,
                        p99_s=times.percentile(99) / 1e9,
                        self_s=point.self_ns / 1e9,
                        critical_s=point.critical_ns / 1e9,
                        paused_s=point.paused_ns / 1e9,
                    )
                )
        found.sort(key=lambda row: -row.total_s)
        return found

    def _point(self, service: str, name: str) -> _Point:
        point = self._points.get((service, name))
        if point is None:
            key = (service, name) if len(self._points) < NAMES else ("", OTHER)
            point = self._points.setdefault(key, _Point())
        return point


def own_ns(tree: Tree, at: int) -> int:
    """Return the self time of the span at position `at`: nanoseconds in which no child ran."""
    low, high = tree.start[at], tree.end[at]
    own = high - low
    children = tree.children[at]
    if len(children) > 1:
        children = sorted(children, key=tree.start.__getitem__)
    for inner in children:
        begin, end = max(tree.start[inner], low), min(tree.end[inner], high)
        if end > begin:
            own -= end - begin
            low = end
    return own


def mistral_table(rows: Iterable[Ranked]) -> str:
    """Return the table of Mistral's guide to profiling as text, largest total time first.

    Times are in seconds; trace points of equal name are summed over services.
    """
    named: dict[str, list[Ranked]] = {}
    for row in rows:
        named.setdefault(row.name, []).append(row)
    sums = [
        (sum(one.total_s for one in same), max(one.max_s for one in same), same)
        for same in named.values()
    ]
    sums.sort(key=lambda one: -one[0])
    lines = ["Total time | Max time | Avg time | Occurrences | Trace name", "-" * 91]
    for total_s, max_s, same in sums:
        number = sum(one.count for one in same)
        lines.append(
            f"{total_s:<12.3f} {max_s:<10.3f} {total_s / number:<10.3f} {number:<13d}"
            f" {plain(same[0].name)}"
        )
    return "\n".join(lines) + "\n"


def ranked_from(rows: Iterable[Mapping[str, Any]]) -> list[Ranked]:
    """Return `Ranked` rows from dictionaries of their fields, as archives store them, in order.

    Raises TypeError for a missing or unknown field.
    """
    return [Ranked(**row) for row in rows]
