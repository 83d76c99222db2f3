"""Traces that commands work on, with their digest: of a run, or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.formatting import count, distinct
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.coverage import TraceCoverage
from osbench.edges.traces.analysis.digest import GRACE_S, digest_of
from osbench.edges.traces.analysis.features import ITERATION, Features
from osbench.edges.traces.analysis.ranking import Ranked, ranked_from
from osbench.edges.traces.analysis.resource_causes import IterationCounters
from osbench.edges.traces.analysis.what_if import DurationLimit, PredictedLoad
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.client_times import client_times
from osbench.edges.traces.collection.iteration_counters import iteration_counters
from osbench.edges.traces.collection.traced_iterations import traced_iterations
from osbench.edges.traces.counters.counter_file import read_counters
from osbench.edges.traces.model.clock_skew import Clocks, clocks_from
from osbench.edges.traces.model.critical_path import Path as CriticalPath
from osbench.edges.traces.model.critical_path import critical_path
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.model.stale_spans import Usual, leave_out_stale
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.sources.files import open_file


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceSet:
    """Traces that a command works on, with their digest: of a run, or in a file.

    The digest is feature table, clock offsets, counts and ranking.
    """

    #: Run id or file name.
    name: str
    features: Features
    clocks: Clocks
    usual: Usual
    coverage: TraceCoverage
    ranking: tuple[Ranked, ...]
    #: Iterates over the traces whose spans are available.
    traces: Callable[[], Iterator[Trace]]
    #: Total number of traces, and of entries that could not be read.
    traced: int
    skipped: int
    #: Use the topmost spans of traces without a root as roots: the callers' spans are elsewhere.
    any_root: bool = False
    #: Number of the scenario's pauses, and their seconds, which the ranking leaves out.
    pauses: int = 0
    paused_s: float = 0.0
    #: Arguments, parameters, queries and messages were kept.
    has_arguments: bool = False
    #: Reads the loads and limits of the groups; none of a file.
    predicted_loads: Callable[[], tuple[PredictedLoad, ...]] = tuple
    #: The run received spans by OTLP.
    by_otlp: bool = False
    #: Messages on the queries to a backend.
    queried: tuple[str, ...] = ()
    #: Reads the counters of the system under test for the features; None if there are none.
    counters: Callable[[], IterationCounters | None] = lambda: None

    def tree_and_paths(self, trace: Trace) -> tuple[Tree, list[CriticalPath]]:
        """Return the tree of a trace without stale spans, and the critical path of each root.

        If the trace is of an iteration, only the root of the iteration gets a path.
        """
        tree = Tree(trace, self.clocks, any_root=self.any_root)
        roots = [tree.iteration] if tree.iteration is not None else list(tree.roots)
        paths = []
        for root in roots:
            leave_out_stale(tree, root, self.usual, GRACE_S)
            paths.append(critical_path(tree, root, self.clocks))
        return tree, paths


def has_traces(directory: RunDirectory) -> bool:
    """Return whether a run has collected traces.

    Raises DamagedRun if they are missing or differ from the run's digests.
    """
    return Archive(directory.path, directory.files).exists


def of_run(directory: RunDirectory) -> TraceSet:
    """Return the collected traces of a run; spans of kept traces are read when iterated.

    Raises UsageError if the run has none, OsbenchError if their files cannot be read, DamagedRun if
    they differ from the run's digests.
    """
    archive = Archive(directory.path, directory.files)
    if not archive.exists:
        summary = directory.read("summary.json") or {"workloads": []}
        states = {one["tracing"]["state"] for one in summary["workloads"]}
        why = f" (tracing: {', '.join(sorted(states))})" if states else ""
        raise UsageError(
            f"run {directory.path.name} has no traces{why}; give its deployment profiler_hmac_key "
            "and a profiler_conn_str of redis://, or use `run --otlp` or `run --traces-from`"
        )
    found = archive.collection()
    features = archive.features()
    try:
        return _trace_set(directory, found, features, archive.traces)
    except (AttributeError, KeyError, TypeError, ValueError):
        path = directory.path / "traces" / "collection.json"
        raise OsbenchError(
            f"{path} is damaged: it has another shape; restore it from a copy"
        ) from None


def _trace_set(
    directory: RunDirectory,
    document: Mapping[str, Any],
    features: Features,
    traces: Callable[[], Iterator[Trace]],
) -> TraceSet:
    """Return the trace set of a run's `collection.json` (`document`), features and kept traces.

    Raises AttributeError, KeyError, TypeError or ValueError for a document of another form.
    """
    return TraceSet(
        name=f"{directory.path.name} (PARTIAL)" if directory.damage else directory.path.name,
        features=features,
        clocks=clocks_from(document["clocks"]),
        usual=_usual(document["usual"]),
        coverage=TraceCoverage.from_dict(document["census"]),
        ranking=tuple(ranked_from(document["ranking"])),
        traces=traces,
        traced=int(document["traced"]),
        skipped=int(document["skipped"]),
        # not in the archives of earlier versions
        pauses=int(document.get("pauses", 0)),
        paused_s=float(document.get("paused_s", 0.0)),
        has_arguments=document.get("arguments", False),
        predicted_loads=lambda: predicted_loads(directory, features),
        by_otlp=document.get("by_otlp", False),
        queried=tuple(map(str, document.get("queried", ()))),
        counters=lambda: iteration_counters(directory, features, read_counters(directory)),
    )


def of_iterations(directory: RunDirectory) -> TraceSet:
    """Return the times of a run's iterations that clients measured, as if they were traces.

    Rows are iterations; there are no spans. Raises UsageError if no iteration ran after the
    warm-up, DamagedRun.
    """
    summary = directory.read("summary.json") or {"workloads": []}
    workloads = summary["workloads"]
    found = client_times(
        directory,
        distinct([one["name"] for one in workloads]),
        {at: int(one["warmup"]["seconds"] * 1e9) for at, one in enumerate(workloads)},
        range(len(workloads)),
    )
    features = found.features
    if not len(features):
        raise UsageError(
            f"run {directory.path.name} has no traces, and no iteration after its warm-up; wait "
            "for its end, or choose another run"
        )
    return TraceSet(
        name=f"{directory.path.name} (PARTIAL)" if directory.damage else directory.path.name,
        features=features,
        clocks=Clocks(),
        usual={},
        coverage=TraceCoverage(),
        ranking=(),
        traces=lambda: iter(()),
        traced=0,
        skipped=0,
        predicted_loads=lambda: predicted_loads(directory, features),
        counters=lambda: iteration_counters(directory, features, read_counters(directory)),
    )


def of_file(path: Path, *, everything: bool = False) -> TraceSet:
    """Return the traces in a file, all in memory; `everything` keeps arguments and queries.

    Raises UsageError if the file cannot be read or has none.
    """
    source = open_file(path, everything=everything)
    found = list(source.all())
    if not found:
        raise UsageError(
            f"{path} has no spans"
            + (
                f": {count(source.skipped, 'entry', 'entries')} could not be read"
                if source.skipped
                else ""
            )
        )
    digest = digest_of(found, any_root=True)
    return TraceSet(
        name=path.name,
        features=digest.table.close(),
        clocks=digest.clocks,
        usual=digest.usual,
        coverage=digest.coverage,
        ranking=tuple(digest.ranking.rows()),
        traces=lambda: iter(found),
        traced=len(found),
        skipped=source.skipped,
        any_root=True,
        pauses=digest.ranking.pauses,
        paused_s=digest.ranking.paused_ns / 1e9,
    )


def _usual(rows: list[Any]) -> Usual:
    return {(tuple(outer), tuple(inner)): number for outer, inner, number in rows}


def predicted_loads(directory: RunDirectory, features: Features) -> tuple[PredictedLoad, ...]:
    """Return kind of load, SLA limits and start lags of each workload of a run, by number.

    Empty without a summary of all workloads. If rows of `features` are iterations, durations are
    response times, and limits on service times of open loads are left out. Raises DamagedRun.
    """
    summary = directory.read("summary.json") or {}
    asked = (directory.read("run.json") or {}).get("workloads", ())
    workloads = summary.get("workloads", ())
    if not workloads or len(asked) != len(workloads):
        return ()
    limits = [tuple(duration_limits(one.get("sla") or {})) for one in asked]
    lag = np.zeros(len(features), np.int64)
    is_open = [is_open_load(one["offered"]) for one in workloads]
    if features.unit == ITERATION:
        limits = [
            tuple(limit for limit in some if limit.of == "response" or not open_)
            for some, open_ in zip(limits, is_open, strict=True)
        ]
    elif any(limit.of == "response" for some in limits for limit in some):
        rows, _ = traced_iterations(directory, len(workloads), {})
        lags = dict(zip(rows.ids(), (rows.response - rows.service).tolist(), strict=True))
        lag = np.array([lags.get(trace, 0) for trace in features.traces], np.int64)
    return tuple(
        PredictedLoad(is_open=open_, limits=some, lag=lag)
        for open_, some in zip(is_open, limits, strict=True)
    )


def duration_limits(sla: Mapping[str, Any]) -> Iterator[DurationLimit]:
    """Yield the limits of an SLA on durations of iterations (not actions) over all of the load.

    Of `percentile`, `max_seconds_per_iteration` and `max_avg_duration`; limits of single actions,
    or over windows of time (`over_s`), are left out.
    """
    given = sla.get("percentile") or ()
    for one in [given] if isinstance(given, Mapping) else given:
        if "action" not in one and "over_s" not in one:
            yield DurationLimit(
                criterion="percentile",
                p=float(one["p"]),
                max_s=float(one["max_s"]),
                of=str(one.get("of", "service")),
            )
    for name, percent in (("max_seconds_per_iteration", 100.0), ("max_avg_duration", None)):
        if isinstance(limit := sla.get(name), int | float):
            yield DurationLimit(criterion=name, p=percent, max_s=float(limit))


def is_open_load(offered: Mapping[str, Any]) -> bool:
    """Return whether the `offered` object of a summary is of an open load; False if it is empty."""
    # the rate would not decide it: an open load with one arrival has none
    return bool(offered) and offered.get("concurrency") is None
