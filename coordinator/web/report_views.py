"""HTML pages with reports, trends and comparisons of runs, for the web server."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.archives.run_archive import ArchivedRun
from osbench.coordinator.comparison.compared_run import (
    earlier_runs,
    finished_runs,
    read_compared_run,
)
from osbench.coordinator.comparison.comparing import compare_sides
from osbench.coordinator.comparison.comparison_page import compare_page, page_policy, trends_page
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.comparison.trends import trend_of
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.report.html.page import live_parts, render_page
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.web import web_pages
from osbench.coordinator.web.report_page import framed, merged

#: Newest runs of a trend.
TREND_RUNS = 60


def report(facts: RunFacts, bar: str) -> str:
    """Return the report page of a run that has ended; `bar`: HTML above it."""
    return render_page(gather(facts), framed(bar))


def live(facts: RunFacts, bar: str) -> str:
    """Return the report page of a running run, which a script updates; `bar`: HTML above it."""
    return render_page(gather(facts, live=True), framed(bar, live=True))


@cache
def report_policy(live: bool) -> str:
    """Return the Content-Security-Policy of report pages; `live`: of running runs. Cached."""
    return merged(page_assets.policy(live))


@cache
def comparison_policy() -> str:
    """Return the Content-Security-Policy of comparison and trend pages. Cached."""
    return merged(page_policy())


def parts(facts: RunFacts) -> tuple[str, list[dict[str, Any]]]:
    """Return the parts of a running run's report that change: HTML of the overview, data of its
    charts.

    Each chart is a dict of JSON values, which may have HTML under "html".
    """
    return live_parts(gather(facts, live=True))


def trend(
    data_dir: str,
    run: RunDirectory,
    alike: Iterable[RunDirectory],
    archived: Iterable[ArchivedRun],
) -> str:
    """Return the HTML page with the trend of `run`: percentiles of runs with its fingerprint.

    The fingerprint stands for task, load and number of workers. `alike`, `archived`: runs to choose
    from, oldest first; the newest `TREND_RUNS` are shown. Raises UsageError if no run of that
    fingerprint had the requested load.
    """
    wanted = read_compared_run(run).fingerprint
    notes: list[str] = []
    found = finished_runs(data_dir, left_out=notes.append, among=alike, archived=archived)
    runs = [one for one in found if one.fingerprint == wanted]
    if not runs:
        raise UsageError(
            f"run {run.path.name} has no trend: no run of this task, load and number of workers "
            "had the requested load; start one that does"
        )
    frame = framed(web_pages.links("", "", ""))
    return trends_page([trend_of(runs[-TREND_RUNS:])], frame, notes)


def comparison(
    data_dir: str, first: RunDirectory, second: RunDirectory, archived: Iterable[ArchivedRun]
) -> str:
    """Return the HTML page that compares two runs, in any order; the earlier one is "before".

    Earlier runs of the same task in the data directory and `archived` show how much runs vary.
    Raises UsageError if a run has no results, or they cannot be compared.
    """
    names = sorted((first, second), key=lambda one: one.path.name)
    before, after = ([read_compared_run(one)] for one in names)
    history = earlier_runs(data_dir, [*before, *after], archived=archived)
    evidence = Evidence(before=before, after=after, history=history)
    return compare_page(compare_sides(evidence), framed(web_pages.links("", "", "")))
