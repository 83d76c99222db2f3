"""Finds the calls of a service that changed between two sides of runs, from traces or requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.coordinator.formatting import count, plain, three_digits
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.run_series import SeriesKey, log_value
from osbench.edges.traces.analysis.comparison import compare_runs
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.analysis.span_calls import CallMean, call_means, changed_means
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.trace_set import of_iterations
from osbench.edges.traces.model.span_keys import SpanKey

#: Changed counts that are named.
_SHOWN = 3


def changed_calls(
    before: Sequence[ComparedRun], after: Sequence[ComparedRun], workload: str, *, changed: bool
) -> str:
    """Return messages on calls that changed between a run of each side, from traces; or "".

    Without traces of both sides, they are on requests that osbench made. Slower calls and requests
    are named only if the workload has `changed` beyond chance. Raises DamagedRun if files of a run
    are cut or changed.
    """
    found = [_traces(side, workload) for side in (before, after)]
    if found[0] is None or found[1] is None:
        return _changed_requests(before, after, workload) if changed else ""
    (features, means), (later, later_means) = found[0], found[1]
    parts = [_changed_times(features, later, workload)] if changed else []
    if counts := changed_means(means, later_means):
        parts.append(f"Calls per iteration: {_counts(counts)}.")
    return " ".join(part for part in parts if part)


def _changed_times(before: Features, after: Features, workload: str) -> str:
    compared = {one.name: one for one in compare_runs(before, after)}
    return compared[workload].sentence if workload in compared else ""


def _changed_requests(
    before: Sequence[ComparedRun], after: Sequence[ComparedRun], workload: str
) -> str:
    """Return a message on requests that became slower, by the middle run of each side; or "".

    "" also if files of a run cannot be read. Raises DamagedRun if they are cut or changed.
    """
    found = []
    for side in (before, after):
        directory = _from_middle(side, workload)[0].files
        if not isinstance(directory, RunDirectory):
            return ""
        try:
            features = of_iterations(directory).features
        except DamagedRun:
            raise
        except (OsbenchError, OSError):
            return ""
        found.append(features)
    return _changed_times(found[0], found[1], workload)


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
) -> tuple[Features, Mapping[SpanKey, CallMean]] | None:
    """Return trace features, and mean calls per iteration, of a run of the side that has traces.

    Of several such runs, it is the run whose median is closest to the middle. None if there is no
    such run whose files can be read. Raises DamagedRun if its files are cut or changed.
    """
    for run in _from_middle(side, workload):
        directory = run.files if run.may_have_traces else None
        archive = None
        if isinstance(directory, RunDirectory):
            archive = Archive(directory.path, directory.files)
        if archive is not None and archive.exists:
            try:
                # not in the archives of earlier versions
                calls = archive.collection().get("calls", {})
                return archive.features(), call_means(calls, workload)
            except DamagedRun:
                raise
            except (OsbenchError, OSError, AttributeError, KeyError, TypeError, ValueError):
                continue
    return None


def _from_middle(side: Sequence[ComparedRun], workload: str) -> list[ComparedRun]:
    """Return the runs of a side: the run with the middle median, then its neighbours in rank."""
    key = SeriesKey(workload=workload, action="", percent=50.0)
    ordered = sorted(side, key=lambda run: log_value(run, key) or 0.0)
    middle = len(ordered) // 2
    return sorted(ordered, key=lambda run: abs(ordered.index(run) - middle))
