"""Statistics by stage of a load. A stage is the time between two changes of the requested load."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from osbench.common.protocol.columns import Columns
from osbench.common.values.histogram import Histogram, rank
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

#: A load of more stages has no statistics of each.
MOST_STAGES = 100

_PERCENTS = (50.0, 95.0, 99.0)
#: Later than all times, nanoseconds.
_NEVER = 2**62


@dataclass(frozen=True, kw_only=True)
class StageFigures:
    """Statistics of one stage of a load. An iteration belongs to the stage in which it was due."""

    #: Seconds after t0.
    from_s: float
    to_s: float
    #: Virtual users (closed loads) or arrivals per second (open ones) requested at both ends.
    begin: float
    end: float
    ok: int
    failed: int
    timed_out: int
    dropped: int
    #: Iterations that were due in the stage and ended well, per second of the stage.
    ok_per_s: float
    #: Iterations that ended well while the stage lasted, whenever they were due, per second.
    ended_per_s: float = 0.0
    #: Iterations that were running on average while it lasted, without think time.
    in_flight: float = 0.0
    #: Times of iterations that were due in it: service times of closed loads, response times of
    #: open ones.
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(slots=True)
class _Part:
    """Requested load and counts of one stage, which may go on.

    `begin` and `end` are levels: virtual users, or arrivals per second.
    """

    begin: float
    end: float
    outcomes: list[int] = field(default_factory=lambda: [0] * (len(Outcome) + 1))
    times: Histogram = field(default_factory=Histogram)
    #: Iterations that ended well while the stage lasted, and nanoseconds that iterations ran then.
    ended: int = 0
    flight_ns: float = 0.0

    def cut(self, at_s: float, from_s: float, to_s: float | None) -> None:
        """Change `end` to the level that is requested at `at_s`: the stage now ends then.

        The stage was planned from `from_s` to `to_s`; seconds after t0. If `to_s` is None, its
        level is constant and stays.
        """
        if to_s is not None and to_s > from_s:
            self.end = self.begin + (self.end - self.begin) * (at_s - from_s) / (to_s - from_s)


class StageStatistics:
    """Counts iterations by stage of a load; memory grows with the number of stages only.

    Falsy, and counts nothing, so long as the load has a single stage.
    """

    def __init__(
        self,
        asked: Sequence[tuple[float, float]] = (),
        *,
        is_open: bool = False,
        lasts_s: float | None = None,
    ) -> None:
        """`asked`: points (seconds after t0, level) of the requested load, linear between points.

        `lasts_s`: its length, None: unknown. `is_open`: times are response times. A load of more
        than `MOST_STAGES` counts as one stage.
        """
        self._is_open = is_open
        self._lasts_s = lasts_s
        #: Begin of each stage, nanoseconds after t0.
        self._begins: list[int] = []
        self._parts: list[_Part] = []
        self._plan(asked)
        if len(self._parts) > MOST_STAGES:
            self._begins, self._parts = self._begins[:1], self._parts[:1]

    def _plan(self, asked: Sequence[tuple[float, float]]) -> None:
        for (from_s, begin), (to_s, end) in pairwise(asked):
            if to_s > from_s:
                self._append(from_s, begin, end)
        if asked and (self._lasts_s is None or asked[-1][0] < self._lasts_s):
            last_s, level = asked[-1]
            self._append(last_s, level, level)

    def _append(self, from_s: float, begin: float, end: float) -> None:
        self._begins.append(round(from_s * 1e9))
        self._parts.append(_Part(begin, end))

    def __bool__(self) -> bool:
        return len(self._parts) > 1

    def begin(self, statistics: WorkloadStatistics) -> None:
        """Copy the load's statistics so far to its only stage, before `change` adds another."""
        times = statistics.response if self._is_open else statistics.service
        for part in self._parts:
            part.outcomes[Outcome.OK] = statistics.count("ok")
            part.outcomes[Outcome.FAILED] = statistics.count("failed")
            part.outcomes[Outcome.TIMED_OUT] = statistics.count("timed_out")
            # reasons are not reported by stage
            part.outcomes[Outcome.DROPPED_LATE] = statistics.count("dropped")
            part.times.merge(times.ok)
            part.ended = statistics.count("ok")
            part.flight_ns = statistics.busy_s * 1e9

    def change(self, at_s: float, asked: Sequence[tuple[float, float]]) -> None:
        """Replace the load from `at_s` (s after t0) on by `asked`; the present stage ends then.

        Later stages are deleted. Ignored beyond `MOST_STAGES` stages.
        """
        at = bisect_right(self._begins, round(at_s * 1e9))
        if at >= MOST_STAGES:
            return
        if at:
            self._parts[at - 1].cut(at_s, self._begins[at - 1] / 1e9, self._end_s(at - 1))
        del self._begins[at:], self._parts[at:]
        self._plan(asked)

    def _end_s(self, at: int) -> float | None:
        return self._begins[at + 1] / 1e9 if at + 1 < len(self._begins) else self._lasts_s

    def add(self, columns: Columns) -> None:
        """Count result rows in the stages in which they were due, each iteration once.

        Ignored so long as there is one stage.
        """
        if not self:
            return
        places = np.searchsorted(self._begins, columns.due, side="right") - 1
        times = columns.ended - (columns.due if self._is_open else columns.started) - columns.idle
        for place in np.unique(places).tolist():
            here = places == place
            part = self._parts[max(0, place)]
            outcomes = columns.outcome[here]
            for code, number in enumerate(np.bincount(outcomes).tolist()):
                part.outcomes[code] += number
            part.times.add(times[here][outcomes == Outcome.OK])
        self._add_flight(columns)

    def _add_flight(self, columns: Columns) -> None:
        """Add the time that iterations ran to the stages in which they ran.

        Successes count in the stage in which they ended.
        """
        # an end of the load, if it is known: later iterations are in no stage
        after = [] if self._lasts_s is None else [round(self._lasts_s * 1e9)]
        edges = np.array([*self._begins, *after, _NEVER])
        ran = columns.outcome <= Outcome.TIMED_OUT
        started, ended = columns.started[ran], columns.ended[ran]
        lengths = np.maximum(ended - started, 1)
        working = 1 - np.minimum(columns.idle[ran], lengths) / lengths
        first = np.maximum(np.searchsorted(edges, started, side="right") - 1, 0)
        last = np.maximum(np.searchsorted(edges, ended, side="right") - 1, 0)
        within = first == last
        flights = np.bincount(
            first[within], (lengths * working)[within], minlength=len(edges)
        ).astype(np.float64)
        across = np.flatnonzero(~within)
        if len(across):
            for place in range(int(first[across].min()), int(last[across].max()) + 1):
                begun = np.maximum(started[across], edges[place] if place else started[across])
                spent = np.maximum(np.minimum(ended[across], edges[place + 1]) - begun, 0)
                flights[place] += float((spent * working[across]).sum())
        ends = np.bincount(last[columns.outcome[ran] == Outcome.OK], minlength=len(edges))
        for part, flight_ns, count in zip(
            self._parts, flights.tolist(), ends.tolist(), strict=False
        ):
            part.flight_ns += flight_ns
            part.ended += count

    def figures(self, until_s: float) -> Iterator[StageFigures]:
        """Yield the figures of stages that began before `until_s` (after t0), in order.

        The last one ends at `until_s`, or when the load ended. Yields nothing for a single stage.
        """
        if not self:
            return
        until_s = until_s if self._lasts_s is None else min(until_s, self._lasts_s)
        ends = [begin / 1e9 for begin in self._begins[1:]] + [until_s]
        for begin_ns, end_s, part in zip(self._begins, ends, self._parts, strict=True):
            from_s, to_s = begin_ns / 1e9, min(end_s, until_s)
            if to_s > from_s:
                yield _figures(part, from_s, to_s)


def _figures(part: _Part, from_s: float, to_s: float) -> StageFigures:
    counts, times = part.outcomes, part.times
    found: list[float | None] = [None] * len(_PERCENTS)
    if times.count:
        ranks = [rank(times.count, percent) for percent in _PERCENTS]
        found = [value / 1e9 for value in times.at_ranks(ranks)]
    ok = counts[Outcome.OK]
    return StageFigures(
        from_s=from_s,
        to_s=to_s,
        begin=part.begin,
        end=part.end,
        ok=ok,
        failed=counts[Outcome.FAILED],
        timed_out=counts[Outcome.TIMED_OUT],
        dropped=sum(counts[Outcome.TIMED_OUT + 1 :]),
        ok_per_s=ok / (to_s - from_s),
        ended_per_s=part.ended / (to_s - from_s),
        in_flight=part.flight_ns / 1e9 / (to_s - from_s),
        p50_s=found[0],
        p95_s=found[1],
        p99_s=found[2],
    )
