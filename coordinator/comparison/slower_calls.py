"""Which call changed, by the traces of one run of each side."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.coordinator.comparison.compared_run import ComparedRun
from osbench.coordinator.comparison.run_series import SeriesKey, log_value
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.traces.analysis.comparison import compare_runs
from osbench.coordinator.traces.analysis.features import Features
from osbench.coordinator.traces.collection.archive import Archive


def changed_calls(
    before: Sequence[ComparedRun], after: Sequence[ComparedRun], workload: str
) -> str:
    """A sentence on the calls that changed; "" where one side has kept no traces."""
    found = [_features(side, workload) for side in (before, after)]
    if found[0] is None or found[1] is None:
        return ""
    compared = {one.name: one for one in compare_runs(found[0], found[1])}
    return compared[workload].sentence if workload in compared else ""


def _features(side: Sequence[ComparedRun], workload: str) -> Features | None:
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
                return archive.features()
            except DamagedRun:
                raise
            except (OsbenchError, OSError):
                continue
    return None
