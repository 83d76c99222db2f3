"""A finished run as exporters get it, read from its directory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from osbench.common.histogram import Histogram, highest_equivalent
from osbench.common.outcomes import Outcome
from osbench.common.plugin.exporter import DurationCounts, ExportedRun, IterationRow
from osbench.common.protocol.blocks import Columns
from osbench.coordinator.report.iterations import counted, iterations
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.traces.collection.archive import Archive
from osbench.coordinator.traces.sources.otlp import to_otlp

#: Kept traces of an export request: some hundred kB.
_TRACES = 100

#: Kinds of durations.
DURATIONS = ("service", "response", "start_lag")


class StoredRun(ExportedRun):
    """A run that has ended with a summary."""

    def __init__(self, directory: RunDirectory, summary: Mapping[str, Any]) -> None:
        self.directory = directory
        self.at = datetime.fromisoformat(summary["finished_at"]).timestamp()
        self.summary = summary
        self.t0_at = starts(directory, len(summary["workloads"]))

    def rows(self) -> Iterator[IterationRow]:
        """Every iteration that ended or was dropped, once."""
        return iterations(self.directory, self.summary)

    def durations(self) -> Sequence[Mapping[str, DurationCounts]]:
        """Counted from the rows, once."""
        return self._durations

    def trace_requests(self) -> Iterator[dict[str, Any]]:
        """The kept traces, some at a time."""
        traces = Archive(self.directory.path).traces()
        while some := list(itertools.islice(traces, _TRACES)):
            yield to_otlp(some)

    @cached_property
    def _durations(self) -> list[dict[str, DurationCounts]]:
        workloads = self.summary["workloads"]
        warmups = [int(one["warmup"]["seconds"] * 1e9) for one in workloads]
        found = [{name: Histogram() for name in DURATIONS} for _ in workloads]
        for number, _, columns, _ in counted(self.directory):
            if 0 <= number < len(found):
                _add(found[number], columns, warmups[number])
        return [{name: _counts(one) for name, one in kinds.items()} for kinds in found]


def starts(directory: RunDirectory, workloads: int) -> tuple[float, ...]:
    """By workload: the instant t0, seconds since 1970-01-01 UTC; 0 where it never began."""
    found = {
        record["workload"]: float(record["t0_at"])
        for record in directory.decisions()
        if record.get("do") == "start"
    }
    return tuple(found.get(number, 0.0) for number in range(workloads))


def _add(kinds: Mapping[str, Histogram], columns: Columns, warmup_ns: int) -> None:
    ran = (columns.outcome <= Outcome.TIMED_OUT) & (columns.started >= warmup_ns)
    kinds["start_lag"].add((columns.started - columns.due)[ran])
    ok = ran & (columns.outcome == Outcome.OK)
    kinds["service"].add((columns.ended - columns.started - columns.idle)[ok])
    kinds["response"].add((columns.ended - columns.due)[ok])


def _counts(histogram: Histogram) -> DurationCounts:
    kept = histogram.to_dict()
    index = np.frombuffer(kept["index"], "<u4").tolist()
    return DurationCounts(
        upper_ns=[min(highest_equivalent(one), histogram.max) for one in index],
        counts=np.frombuffer(kept["counts"], "<i8").tolist(),
        sum_s=histogram.sum / 1e9,
    )
