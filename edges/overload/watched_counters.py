"""Counters of the system under test, and calls by span, in each stretch of an overload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from osbench.common.errors import DamagedRun
from osbench.coordinator.results.accounting.counter_figures import Counters
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.overload.holding import figures_by_name
from osbench.edges.overload.overload_figures import HeldFigure
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.counters.counter_series import WorkloadCounters
from osbench.edges.traces.model.spans import Trace, joined_words, trace_key

#: Traces of a stretch without which calls are not compared, and spans of one that are counted.
_FEWEST, _MOST_SPANS = 5, 500_000
#: Standard deviations by which calls have changed beyond chance.
_CLEAR = 3.0
#: Kinds of spans that are counted apart; others are left out in all stretches.
_KINDS = 2000


def counter_figures(
    counters: Counters | None, stretches: Mapping[str, tuple[float, float]]
) -> Iterator[HeldFigure]:
    """Yield the mean of each counter in the stretches, seconds after t0 by name.

    Nothing if the run has read no counters.
    """
    if not isinstance(counters, WorkloadCounters):
        return
    for one in counters.series:
        means = {
            name: {one.label: mean}
            for name, span in stretches.items()
            if (mean := counters.mean(one, [span])) is not None
        }
        yield from figures_by_name(means, one.unit)


def span_figures(directory: RunDirectory, traced: Mapping[bytes, str]) -> Iterator[HeldFigure]:
    """Yield the calls per iteration of kinds of spans that changed beyond chance.

    In complete kept traces. `traced`: name of the stretch by trace id. Nothing for stretches with
    few traces, or if the traces cannot be read.
    """
    stretch_of = {trace_key(one.hex()): name for one, name in traced.items()}
    found: dict[str, _Calls] = {}
    known: set[str] = set()
    try:
        for trace in Archive(directory.path, directory.files).traces():
            name = stretch_of.get(trace_key(trace.trace_id))
            if name is None:
                continue
            calls = found.setdefault(name, _Calls())
            if calls.spans < _MOST_SPANS and trace.is_whole:
                calls.add(trace, known)
    except (OSError, DamagedRun):
        return
    before, end = (found.get(name, _Calls()) for name in ("before", "end"))
    if min(before.traces, end.traces) < _FEWEST:
        return
    # a kind that a stretch does not have is 0 there
    kinds = [kind for kind in before.sums | end.sums if _has_changed(before, end, kind)]
    means = {name: {kind: calls.mean(kind) for kind in kinds} for name, calls in found.items()}
    yield from figures_by_name(means, label="calls of {} per iteration")


@dataclass(kw_only=True)
class _Calls:
    """Calls in the traces of one stretch by kind of span: their sum, and the sum of squares."""

    traces: int = 0
    spans: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    squares: Counter[str] = field(default_factory=Counter)

    def add(self, trace: Trace, known: set[str]) -> None:
        """Count a trace; kinds that are new to all stretches only while `known` has few."""
        kinds = Counter(joined_words(one.service, one.name, one.detail) for one in trace.spans)
        self.traces += 1
        self.spans += len(trace.spans)
        for kind, number in kinds.items():
            if len(known) < _KINDS:
                known.add(kind)
            if kind in known:
                self.sums[kind] += number
                self.squares[kind] += number * number

    def mean(self, kind: str) -> float:
        """Return the calls per trace; 0 without traces."""
        return self.sums[kind] / max(1, self.traces)

    def uncertainty(self, kind: str) -> float:
        """Return the variance of that mean."""
        spread = self.squares[kind] / self.traces - self.mean(kind) ** 2
        return max(0.0, spread) / max(1, self.traces - 1)


def _has_changed(before: _Calls, end: _Calls, kind: str) -> bool:
    spread = math.sqrt(before.uncertainty(kind) + end.uncertainty(kind))
    return abs(end.mean(kind) - before.mean(kind)) > _CLEAR * spread
