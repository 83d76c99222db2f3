"""Runs as exporters get them, read from the run directory: finished, or under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from osbench.common.plugin.exporter import (
    DurationCounts,
    ExportedRun,
    IterationRow,
    RunSnapshot,
)
from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.foreign_results import foreign_results
from osbench.coordinator.report.iterations import counted_blocks, iterations, starts
from osbench.coordinator.report.kept_traces import kept_traces
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.time_figures import TimeFigures
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix, bounds_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline

#: Kinds of durations.
DURATIONS = ("service", "response", "start_lag")


class StoredRun(ExportedRun):
    """A finished run as exporters get it, read from its directory."""

    def __init__(self, directory: RunDirectory, summary: Mapping[str, Any]) -> None:
        self.directory = directory
        self.report = Report.from_json(summary)
        self.at = datetime.fromisoformat(str(self.report.finished_at)).timestamp()
        self.summary = summary
        self.t0_at = starts(directory, len(self.report.workloads))

    def rows(self) -> Iterator[IterationRow]:
        """Return an iterator of every iteration that ended or was dropped. Raises DamagedRun."""
        return iterations(self.directory, self.report)

    def durations(self) -> Sequence[Mapping[str, DurationCounts]]:
        """Return counts of durations by workload and kind (`DURATIONS`), without warm-up; cached.

        Runs of older releases have none stored: all result blocks are read.
        """
        return self._durations

    def trace_requests(self) -> Iterator[dict[str, Any]]:
        """Yield the kept traces as OTLP export requests. Raises DamagedRun."""
        traces = kept_traces()
        if traces is not None:
            yield from traces.export_requests(self.directory)

    def rally_results(self) -> list[dict[str, Any]]:
        """Return the results in the form that Rally passes to its own exporters.

        Raises PluginError without the package for Rally.
        """
        return foreign_results("rally").task_results(self.directory, self.report)

    @cached_property
    def _durations(self) -> list[dict[str, DurationCounts]]:
        timeline = read_timeline(self.directory)
        if timeline is not None and timeline["complete"]:
            return durations_of(timeline, self.report)
        # runs of older releases have none
        return self._counted()

    def _counted(self) -> list[dict[str, DurationCounts]]:
        workloads = self.report.workloads
        warmups = [int(one.warmup.seconds * 1e9) for one in workloads]
        found = [{name: LatencyMatrix(1) for name in DURATIONS} for _ in workloads]
        for number, _, columns, _ in counted_blocks(self.directory):
            if 0 <= number < len(found):
                _add(found[number], columns, warmups[number])
        return [_by_kind(*pair) for pair in zip(found, workloads, strict=True)]


class LiveRun(RunSnapshot):
    """A run under load as exporters get it, as of its last checkpoint."""

    def __init__(self, timeline: Mapping[str, Any]) -> None:
        self.at = float(timeline["at"])
        # the one of a checkpoint is that of a run that ended there
        self.summary = {**timeline["summary"], "exit_code": None}
        self.t0_at = tuple(float(one["t0_at"] or 0) for one in timeline["workloads"])
        self._timeline = timeline

    def durations(self) -> Sequence[Mapping[str, DurationCounts]]:
        """Return counts of durations by workload and kind (`DURATIONS`), as of the checkpoint."""
        return durations_of(self._timeline, Report.from_json(self.summary))


def durations_of(timeline: Mapping[str, Any], report: Report) -> list[dict[str, DurationCounts]]:
    """Return the counts of durations in a timeline: for each workload, by kind (`DURATIONS`)."""
    return [
        _by_kind({name: LatencyMatrix.from_dict(one[name]) for name in DURATIONS}, workload)
        for one, workload in zip(timeline["workloads"], report.workloads, strict=True)
    ]


def _add(kinds: Mapping[str, LatencyMatrix], columns: Columns, warmup_ns: int) -> None:
    ran = (columns.outcome <= Outcome.TIMED_OUT) & (columns.started >= warmup_ns)
    ok = ran & (columns.outcome == Outcome.OK)
    kinds["start_lag"].add(columns.due[ran], (columns.started - columns.due)[ran])
    kinds["service"].add(columns.due[ok], (columns.ended - columns.started - columns.idle)[ok])
    kinds["response"].add(columns.due[ok], columns.response[ok])


def _by_kind(
    matrices: Mapping[str, LatencyMatrix], workload: WorkloadReport
) -> dict[str, DurationCounts]:
    times = {
        "service": workload.times("service"),
        "response": workload.times("response"),
        "start_lag": workload.start_lag,
    }
    return {name: _counts(matrices[name], times[name]) for name in DURATIONS}


def _counts(matrix: LatencyMatrix, times: TimeFigures) -> DurationCounts:
    """Return the counts of a matrix by upper bound of bucket (ns), without empty buckets.

    The sum is exact: it follows from the mean in `times`.
    """
    sums = matrix.summed()
    used = np.flatnonzero(sums)
    _, upper = bounds_of(used + matrix.lowest)
    return DurationCounts(
        upper_ns=np.ceil(upper).astype(np.int64).tolist(),
        counts=sums[used].tolist(),
        sum_s=times.sum_s,
    )
