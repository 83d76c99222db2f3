"""Which call changed, by the traces of one run of each side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.coordinator.comparison.compared_run import ComparedRun
from osbench.coordinator.comparison.run_series import SeriesKey, log_value
from osbench.coordinator.formatting import count, plain, three_digits
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.traces.analysis.comparison import compare_runs
from osbench.coordinator.traces.analysis.features import Features
from osbench.coordinator.traces.analysis.span_calls import call_means, changed_means
from osbench.coordinator.traces.collection.archive import Archive
from osbench.coordinator.traces.model.span_keys import SpanKey

#: Changed counts that are named.
_SHOWN = 3


def changed_calls(
    before: Sequence[ComparedRun], after: Sequence[ComparedRun], workload: str
) -> str:
    """Sentences on the calls that changed; "" where one side has kept no traces."""
    found = [_traces(side, workload) for side in (before, after)]
    if found[0] is None or found[1] is None:
        return ""
    (features, calls), (later, later_calls) = found[0], found[1]
    compared = {one.name: one for one in compare_runs(features, later)}
    parts = [compared[workload].sentence] if workload in compared else []
    means = (call_means(form, workload) for form in (calls, later_calls))
    if changed := changed_means(*means):
        parts.append(f"Calls per iteration: {_counts(changed)}.")
    return " ".join(parts)


def _counts(changed: Sequence[tuple[SpanKey, float, float]]) -> str:
    said = [
        f"{plain(str(key), 200)} {_number(first)} -> {_number(second)}"
        for key, first, second in changed[:_SHOWN]
    ]
    more = len(changed) - _SHOWN
    return ", ".join([*said, *([f"and {count(more, 'other')}"] if more > 0 else [])])


def _number(calls: float) -> str:
    return three_digits(calls) if calls else "0"


def _traces(
    side: Sequence[ComparedRun], workload: str
) -> tuple[Features, Mapping[str, Any]] | None:
    """Those of the run in the middle of its side that has traces."""
    key = SeriesKey(workload=workload, action="", percent=50.0)
    ordered = sorted(side, key=lambda run: log_value(run, key) or 0.0)
    middle = len(ordered) // 2
    for run in sorted(ordered, key=lambda run: abs(ordered.index(run) - middle)):
        archive = None
        if isinstance(run.directory, RunDirectory):
            archive = Archive(run.directory.path, run.directory.files)
        if archive is not None and archive.exists:
            try:
                # not in the archives of earlier versions
                return archive.features(), archive.collection().get("calls", {})
            except DamagedRun:
                raise
            except (OsbenchError, OSError):
                continue
    return None
