"""Counters of the system under test, and calls by span, in each stretch of an overload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from osbench.common.errors import DamagedRun
from osbench.coordinator.results.accounting.counter_figures import Counters
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.overload.holding import figures_by_name
from osbench.edges.overload.overload_figures import HeldFigure
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.counters.counter_series import WorkloadCounters
from osbench.edges.traces.model.spans import Trace, joined_words, trace_key

#: Traces of a stretch without which calls are not compared, and spans that are read at most.
_FEWEST, _MOST_SPANS = 5, 2_000_000
#: Kinds of spans that are counted apart.
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
    """Yield the calls per iteration of each kind of span, in complete kept traces.

    `traced`: name of the stretch by trace id. Nothing for stretches with few traces, or if the
    traces cannot be read.
    """
    stretch_of = {trace_key(one.hex()): name for one, name in traced.items()}
    calls: dict[str, Counter[str]] = {}
    traces: Counter[str] = Counter()
    read = 0
    try:
        for trace in Archive(directory.path, directory.files).traces():
            name = stretch_of.get(trace_key(trace.trace_id))
            if name is None or not trace.is_whole:
                continue
            read += len(trace.spans)
            if read > _MOST_SPANS:
                break
            traces[name] += 1
            _add(calls.setdefault(name, Counter()), trace)
    except (OSError, DamagedRun):
        return
    if min(traces["before"], traces["end"]) < _FEWEST:
        return
    # a kind that a stretch does not have is 0 there
    kinds = {kind for name in ("before", "end") for kind in calls.get(name, ())}
    means = {
        name: {kind: calls.get(name, Counter())[kind] / traces[name] for kind in kinds}
        for name in traces
    }
    yield from figures_by_name(means, label="calls of {} per iteration")


def _add(calls: Counter[str], trace: Trace) -> None:
    for span in trace.spans:
        kind = joined_words(span.service, span.name, span.detail)
        if kind in calls or len(calls) < _KINDS:
            calls[kind] += 1
