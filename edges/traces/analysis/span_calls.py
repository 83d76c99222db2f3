"""Counts how often each iteration calls spans: spans that SLA criteria select, and all kinds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.features import NO_GROUP
from osbench.edges.traces.model.critical_path import is_pause
from osbench.edges.traces.model.span_keys import SpanKey, SpanPattern, Vocabulary
from osbench.edges.traces.model.tree import Tree

#: Durations that are put into a histogram together.
_WAITING = 4096
#: Most kinds of spans whose selection is remembered.
_KINDS = 10_000
#: Most kinds of spans per workload that are kept: the kinds with the most calls.
_KEPT = 200
#: Normal deviates from which a mean of calls has changed, and least change.
_DEVIATES, _LEAST = 3.3, 0.05


@dataclass(frozen=True, kw_only=True)
class CallMean:
    """Calls of one kind of span in the traces of a workload.

    Number of traces, sum of the calls, and sum of the squared numbers of calls per trace.
    """

    traces: int
    sum: int
    squares: int

    @property
    def mean(self) -> float:
        """Mean number of calls per trace; 0.0 without traces."""
        return self.sum / self.traces if self.traces else 0.0

    @property
    def variance(self) -> float:
        """Square of the standard error of `mean`; 0.0 with fewer than two traces."""
        if self.traces < 2:
            return 0.0
        return max(self.squares / self.traces - self.mean**2, 0.0) / (self.traces - 1)


class _Gauge:
    def __init__(self, selection: SpanSelection) -> None:
        self._pattern = SpanPattern(service=selection.service, name=selection.name)
        self._selected: dict[SpanKey, bool] = {}
        self._durations: list[int] = []
        self._histogram = Histogram()
        self._calls: Counter[int] = Counter()
        self._examples: dict[int, int] = {}

    def selects(self, key: SpanKey) -> bool:
        found = self._selected.get(key)
        if found is None:
            if len(self._selected) >= _KINDS:
                self._selected.clear()
            found = self._selected[key] = self._pattern.matches(key)
        return found

    def add(self, iteration: int, durations: Sequence[int]) -> None:
        calls = len(durations)
        self._calls[calls] += 1
        self._examples.setdefault(calls, iteration)
        self._durations += durations
        if len(self._durations) >= _WAITING:
            self._settle()

    def figures(self, incomplete: int) -> SpanFigures:
        self._settle()
        calls = dict(sorted(self._calls.items()))
        return SpanFigures(
            traces=self._calls.total(),
            incomplete=incomplete,
            calls=calls,
            most=self._examples[max(calls)] if calls else None,
            fewest=self._examples[min(calls)] if calls else None,
            durations=self._histogram,
        )

    def _settle(self) -> None:
        self._histogram.add(np.array(self._durations, np.int64))
        self._durations = []


class SpanCalls:
    """Counts spans per iteration, trace by trace; memory does not grow with the number of traces.

    Two kinds of counts: spans that SLA criteria select, and all spans by service, name and detail.
    """

    def __init__(self, selections: Mapping[int, Sequence[SpanSelection]] | None = None) -> None:
        """`selections`: spans to count for SLA criteria, by number of the group."""
        self._gauges = {
            group: [_Gauge(one) for one in some] for group, some in (selections or {}).items()
        }
        self._vocabulary = Vocabulary()
        #: By group and kind: calls and their squares.
        self._sums: dict[tuple[int, int], list[int]] = {}
        self._traces: Counter[int] = Counter()
        self._incomplete: Counter[int] = Counter()

    def add(self, tree: Tree, *, group: int, iteration: int, outcome: int, whole: bool) -> None:
        """Count the spans of a successful iteration whose trace is complete (`whole`).

        If the trace is incomplete, only counts that. Failed iterations, and traces without a group,
        are ignored. Pauses and left-out spans do not count.
        """
        if group == NO_GROUP or outcome != Outcome.OK:
            return
        if not whole:
            self._incomplete[group] += 1
            return
        self._traces[group] += 1
        spans = [
            (SpanKey(span.service, span.name, span.detail), span.duration_ns)
            for at, span in enumerate(tree.spans)
            if at not in tree.left_out and not is_pause(tree, at)
        ]
        for gauge in self._gauges.get(group, ()):
            gauge.add(iteration, [length for key, length in spans if gauge.selects(key)])
        counts = Counter(self._vocabulary.number(key) for key, _ in spans)
        for kind, calls in counts.items():
            sums = self._sums.setdefault((group, kind), [0, 0])
            sums[0] += calls
            sums[1] += calls * calls

    def figures(self) -> dict[int, tuple[SpanFigures, ...]]:
        """Return by number of group the figures of its selections, in the order of `selections`."""
        return {
            group: tuple(gauge.figures(self._incomplete[group]) for gauge in gauges)
            for group, gauges in self._gauges.items()
        }

    def to_dict(self, groups: Sequence[str]) -> dict[str, Any]:
        """Return by name of group its number of traces, and the calls of its kinds of spans.

        `kinds`: at most the `_KEPT` most frequent kinds, as lists of service, name, detail, calls,
        and sum of the squared calls per trace.
        """
        found: dict[str, Any] = {}
        for number, name in enumerate(groups):
            mine = [(sums, kind) for (group, kind), sums in self._sums.items() if group == number]
            mine.sort(reverse=True)
            kinds = [[*self._vocabulary.keys[kind], *sums] for sums, kind in mine[:_KEPT]]
            found[name] = {"traces": self._traces[number], "kinds": kinds}
        return found


def call_means(form: Mapping[str, Any], group: str) -> dict[SpanKey, CallMean]:
    """Return by kind of span the calls in a group, from a dictionary by `SpanCalls.to_dict`.

    Empty if the group is missing. Raises KeyError, TypeError, ValueError for another dictionary.
    """
    found = form.get(group) or {"traces": 0, "kinds": []}
    return {
        SpanKey(str(who), str(what), str(about)): CallMean(
            traces=int(found["traces"]), sum=int(calls), squares=int(squares)
        )
        for who, what, about, calls, squares in found["kinds"]
    }


def changed_means(
    before: Mapping[SpanKey, CallMean], after: Mapping[SpanKey, CallMean]
) -> list[tuple[SpanKey, float, float]]:
    """Return kinds of spans whose mean calls per iteration changed beyond chance, by at least 0.05.

    As (key, mean before, mean after), largest change first. A kind that one side lacks counts as 0
    calls there, or is left out if that side has `_KEPT` kinds: it may have more. Empty if a side
    has none.
    """
    found = []
    sides = [max((one.traces for one in side.values()), default=0) for side in (before, after)]
    if not all(sides):
        return []
    cut = [side for side in (before, after) if len(side) >= _KEPT]
    for key in {**before, **after}:
        if any(key not in side for side in cut):
            continue
        first, second = (
            side.get(key, CallMean(traces=traces, sum=0, squares=0))
            for side, traces in zip((before, after), sides, strict=True)
        )
        change = abs(second.mean - first.mean)
        error = math.sqrt(first.variance + second.variance)
        if change >= _LEAST and change > _DEVIATES * error:
            found.append((key, first.mean, second.mean))
    return sorted(found, key=lambda one: (-abs(one[2] - one[1]), one[0]))
