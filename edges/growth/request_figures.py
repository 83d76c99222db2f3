"""Reads the figures of each request of a finished run: time, calls, spans, statements, bytes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import titles
from osbench.coordinator.report.iterations import counted_blocks, iterations
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.time_figures import TimeFigures
from osbench.coordinator.results.statistics.action_paths import entries_by_group, name_paths
from osbench.coordinator.results.statistics.percentiles import interval_ranks
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.growth.traced_counts import (
    CallCounts,
    CountedRequest,
    RequestKey,
    TracedCounts,
    largest_kinds,
    per_call,
    traced_counts,
)

#: Kinds of spans of a request whose growth is looked at.
_KINDS = 100
#: Counts up to which the interval of their median is by the binomial distribution.
_FEW = 50


@dataclass(frozen=True, kw_only=True)
class MedianFigure:
    """A median with its 95 % interval; from few values it spans all of them."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> MedianFigure | None:
        """Return the median of values, by order statistics; None without values."""
        if not values:
            return None
        ordered = sorted(values)
        ranks = interval_ranks(len(ordered), 50.0) or (1, len(ordered))
        return cls._of_ranks(ordered, *ranks)

    @classmethod
    def of_counts(cls, values: Sequence[float]) -> MedianFigure | None:
        """Return the median of counts, of which most are often equal; None without counts.

        Its interval is the shortest between two of them that has a probability of 95 % or more. So
        a cold cache in an iteration of eight leaves the others exact.
        """
        number = len(values)
        if not 0 < number <= _FEW:
            return cls.of(values)
        ordered = sorted(values)
        found = [cls._of_ranks(ordered, *ranks) for ranks in _covering_ranks(number)]
        return min(found, key=lambda one: one.high - one.low)

    @classmethod
    def _of_ranks(cls, ordered: Sequence[float], low: int, high: int) -> MedianFigure:
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        return cls(value=middle, low=ordered[low - 1], high=ordered[high - 1])


@dataclass(frozen=True, kw_only=True)
class RequestFigures:
    """The figures of one request in one run; None for figures that are not known."""

    #: Seconds of a call.
    time: MedianFigure | None = None
    #: Calls in an iteration.
    calls: MedianFigure | None = None
    #: Spans of services, and statements in SQL, of a call.
    spans: MedianFigure | None = None
    sql: MedianFigure | None = None
    #: Bytes of responses of a call, on average.
    bytes: MedianFigure | None = None
    #: Most frequent kinds of spans, by service, name and detail: number in a call, on average.
    kinds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run at one population."""

    population: int
    run_id: str
    exit_code: int
    #: Whether the load generator was the limit: then times say nothing about the service.
    limited: bool
    requests: Mapping[RequestKey, RequestFigures]
    #: Titles of its workloads, no two the same.
    workloads: tuple[str, ...]
    #: Iterations that succeeded after the warm-up, and iterations that did not.
    ok: int
    bad: int
    #: Counted traces, traced iterations that succeeded, traces that lack spans.
    counted: int = 0
    traced: int = 0
    incomplete: int = 0
    #: Whether services have sent spans.
    has_spans: bool = False


def _covering_ranks(number: int) -> Iterator[tuple[int, int]]:
    """Yield ranks (from 1) whose values bound the median of `number` values with 95 % or more.

    The values below the median are binomial. All values bound it with less if there are few.
    """
    yield 1, number
    for low in range(1, number + 1):
        inside = 0
        for high in range(low + 1, number + 1):
            inside += math.comb(number, high - 1)
            if inside >= 0.95 * 2**number:
                yield low, high
                break


def read_run(report: Report, directory: RunDirectory, population: int) -> MeasuredRun:
    """Return the figures of a finished run. Raises DamagedRun, OsbenchError."""
    workloads = {
        row.trace_id: row.workload
        for row in iterations(directory, report)
        if row.trace_id and row.state == "ok" and not row.warmup
    }
    actions = {at: one.actions.keys() for at, one in enumerate(report.workloads)}
    counts = traced_counts(directory, workloads, actions)
    return MeasuredRun(
        population=population,
        run_id=report.run_id,
        exit_code=report.code,
        limited=report.is_limited,
        requests=_requests(report, directory, counts),
        workloads=tuple(titles(map(_names, report.workloads))),
        ok=sum(one.main_times.count for one in report.workloads),
        bad=sum(one.bad for one in report.workloads),
        counted=counts.counted,
        traced=len(workloads),
        incomplete=counts.incomplete,
        has_spans=counts.has_spans,
    )


def _names(workload: WorkloadReport) -> tuple[str, str, str]:
    own = workload.name if workload.name != workload.scenario else ""
    return own, workload.subtask, workload.scenario


def _requests(
    report: Report, directory: RunDirectory, counts: TracedCounts
) -> dict[RequestKey, RequestFigures]:
    found: dict[RequestKey, RequestFigures] = {}
    medians = _action_medians(directory, report)
    for at, workload in enumerate(report.workloads):
        paths = list(workload.actions) or [""]
        for path in paths:
            key = RequestKey(at, path)
            counted = counts.requests.get(key) if counts.has_spans else None
            times = workload.actions[path].ok if path else workload.times("service")
            found[key] = _figures(
                counted,
                _time(times, medians.get((at, path))),
                _bytes(workload, path),
            )
    if counts.has_spans:
        found |= _calls_within(counts, found)
    return found


def _figures(
    counted: CountedRequest | None, time: MedianFigure | None, size: MedianFigure | None
) -> RequestFigures:
    if counted is None:
        return RequestFigures(time=time, bytes=size)
    rows = counted.iterations
    return RequestFigures(
        time=time,
        calls=MedianFigure.of_counts([one.calls for one in rows]),
        spans=MedianFigure.of_counts(per_call(rows, "spans")),
        sql=MedianFigure.of_counts(per_call(rows, "sql")),
        bytes=size,
        kinds=dict(largest_kinds(counted, _KINDS)),
    )


def _calls_within(
    counts: TracedCounts, whole: Mapping[RequestKey, RequestFigures]
) -> dict[RequestKey, RequestFigures]:
    """Return the calls to services within each action, by their spans.

    An iteration that lacks a call counts as 0 calls.
    """
    found = {}
    for key, counted in counts.requests.items():
        around = key._replace(call="")
        if not key.call or around not in whole:
            continue
        missing = len(counts.requests[around].iterations) - len(counted.iterations)
        rows = [*counted.iterations, *[CallCounts(0, 0, 0, 0)] * missing]
        seconds = [one / 1e9 for one in per_call(rows, "duration_ns")]
        found[key] = _figures(
            CountedRequest(iterations=rows, kinds=counted.kinds), MedianFigure.of(seconds), None
        )
    return found


def _time(figures: TimeFigures, measured: MedianFigure | None) -> MedianFigure | None:
    """Return the median of a request's times in seconds, with the interval of the report.

    A run that is too short for an interval has `measured`, by independent samples.
    """
    if not figures.count or figures.p50 is None:
        return None
    low, high = figures.ci.get("p50") or (None, None)
    if low is None or high is None:
        return measured or MedianFigure(
            value=figures.p50, low=figures.min or 0.0, high=figures.max or figures.p50
        )
    return MedianFigure(value=figures.p50, low=low, high=high)


def _bytes(workload: WorkloadReport, path: str) -> MedianFigure | None:
    """Return the mean bytes of the responses of a call; None if osbench's client made none."""
    if workload.requests is None:
        return None
    counts = workload.requests.actions.get(path) if path else workload.requests.total
    if counts is None or not counts.received_bytes or not counts.statuses:
        return None
    calls = workload.actions[path].ok.count if path else workload.ran
    mean = counts.received_bytes / max(calls, 1)
    return MedianFigure(value=mean, low=mean, high=mean)


def _action_medians(directory: RunDirectory, report: Report) -> dict[tuple[int, str], MedianFigure]:
    """Return the median durations of actions in seconds, by workload and path."""
    warmups = [int(one.warmup.seconds * 1e9) for one in report.workloads]
    parts: dict[tuple[int, str], list[NDArray[np.int64]]] = defaultdict(list)
    for block in counted_blocks(directory):
        columns = block.columns
        fine = (columns.outcome == Outcome.OK) & (columns.started >= warmups[block.workload])
        lines = columns.actions
        if len(lines):
            number, paths = name_paths(lines, columns.names)
            lasted = np.where(fine[lines[:, 0]] & (lines[:, 5] == 0), lines[:, 4] - lines[:, 3], -1)
            for which, entries in entries_by_group(number):
                parts[block.workload, paths[which]].append(lasted[entries])
        else:
            lasted = columns.ended - columns.started - columns.idle
            parts[block.workload, ""].append(np.where(fine, lasted, -1))
    medians = {key: _median(some) for key, some in parts.items()}
    return {key: one for key, one in medians.items() if one is not None}


def _median(parts: Iterable[NDArray[np.int64]]) -> MedianFigure | None:
    lasted = np.concatenate(list(parts))
    return MedianFigure.of((lasted[lasted >= 0] / 1e9).tolist())
