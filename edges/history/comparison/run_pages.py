"""Pages of the web server with a comparison or a trend of finished runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from osbench.common.errors import UsageError
from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_store import SharedRun
from osbench.edges.history.archives.run_archive import ArchivedRun
from osbench.edges.history.comparison.compared_run import (
    earlier_runs,
    finished_runs,
    read_compared_run,
)
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import compare_page, page_policy, trends_page
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.trends import trend_of

#: Newest runs of a trend.
TREND_RUNS = 60


class RunPages:
    """Pages with comparisons and trends of runs, as the core's `ComparisonPages` describes."""

    def compare(
        self,
        data_dir: str,
        runs: tuple[RunDirectory, RunDirectory],
        shared: Iterable[SharedRun],
        frame: PageFrame,
    ) -> str:
        """Return the page that compares two runs, in any order; the earlier one is "before".

        Earlier runs of the same task in the data directory and `shared` show how much runs vary.
        Raises UsageError if a run has no results, or they cannot be compared, DamagedRun.
        """
        names = sorted(runs, key=lambda one: one.path.name)
        before, after = ([read_compared_run(one)] for one in names)
        history = earlier_runs(data_dir, [*before, *after], archived=_archived_runs(shared))
        evidence = Evidence(before=before, after=after, history=history)
        return compare_page(compare_sides(evidence), frame)

    def trend(
        self,
        data_dir: str,
        run: RunDirectory,
        alike: Iterable[RunDirectory],
        shared: Iterable[SharedRun],
        frame: PageFrame,
    ) -> str:
        """Return the page with the trend of `run`: percentiles of runs with its fingerprint.

        The fingerprint stands for task, load, deployment and number of workers. `alike`, `shared`:
        runs to choose from; the newest `TREND_RUNS` are shown. Unreadable ones are named on the
        page. Raises UsageError if no run of that fingerprint had the requested load, and the errors
        of `read_compared_run`.
        """
        wanted = read_compared_run(run).fingerprint
        notes: list[str] = []
        found = finished_runs(
            data_dir, left_out=notes.append, among=alike, archived=_archived_runs(shared)
        )
        same = [one for one in found if one.fingerprint == wanted]
        if not same:
            raise UsageError(
                f"run {run.path.name} has no trend: no run of this task, load and number of workers"
                " had the requested load; make such a run"
            )
        return trends_page([trend_of(same[-TREND_RUNS:])], frame, notes)

    def policy(self) -> str:
        """Return the Content-Security-Policy of these pages."""
        return page_policy()


def _archived_runs(shared: Iterable[SharedRun]) -> Iterable[ArchivedRun]:
    # the entry point of archives is of this package, too
    return cast("Iterable[ArchivedRun]", shared)
