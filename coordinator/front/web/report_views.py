"""HTML pages with reports, trends and comparisons of runs, for the web server.

The server adds a bar above a page, and its own rules to the content policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from osbench.coordinator.front.web import web_pages
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.report.html.page import live_parts, render_page
from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_comparison import comparison_pages
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_store import SharedRun


def report(facts: RunFacts, bar: str) -> str:
    """Return the report page of a run that has ended; `bar`: HTML above it."""
    return render_page(gather(facts), page_frame(bar))


def live(facts: RunFacts, bar: str) -> str:
    """Return the report page of a running run, which a script updates; `bar`: HTML above it."""
    return render_page(gather(facts, live=True), page_frame(bar, live=True))


@cache
def report_policy(live: bool) -> str:
    """Return the Content-Security-Policy of report pages; `live`: of running runs. Cached."""
    return merged_policy(page_assets.policy(live))


@cache
def comparison_policy() -> str:
    """Return the Content-Security-Policy of comparison and trend pages. Cached."""
    return merged_policy(comparison_pages().policy())


def parts(facts: RunFacts) -> tuple[str, list[dict[str, Any]]]:
    """Return the changing parts of a running run's report: HTML of the overview, data of charts.

    Each chart is a dict of JSON values, which may have HTML under "html".
    """
    return live_parts(gather(facts, live=True))


def trend(
    data_dir: str,
    run: RunDirectory,
    alike: Iterable[RunDirectory],
    shared: Iterable[SharedRun],
    bar: str,
) -> str:
    """Return the HTML page with the trend of `run`, as of `ComparisonPages.trend`."""
    return comparison_pages().trend(data_dir, run, alike, shared, page_frame(bar))


def comparison(
    data_dir: str, runs: tuple[RunDirectory, RunDirectory], shared: Iterable[SharedRun], bar: str
) -> str:
    """Return the HTML page that compares two runs, as of `ComparisonPages.compare`."""
    return comparison_pages().compare(data_dir, runs, shared, page_frame(bar))


def page_frame(bar: str = "", *, live: bool = False) -> PageFrame:
    """Return the server's additions to a report page: style sheet, `bar` (HTML above the report).

    `live`: also the script that updates a running run's page.
    """
    script = "/static/live.js" if live else ""
    return PageFrame(style="/static/web.css", script=script, bar=web_pages.markup(bar))


def merged_policy(policy: str) -> str:
    """Return a page's Content-Security-Policy `policy`, extended by the server's own `POLICY`.

    It has to be one header: of two, a browser allows only the intersection.
    """
    rules: dict[str, list[str]] = {}
    for text in (policy, web_pages.POLICY):
        for rule in text.split(";"):
            name, *values = rule.split()
            known = rules.setdefault(name, [])
            known += [value for value in values if value not in known]
    for values in rules.values():
        if len(values) > 1 and "'none'" in values:
            values.remove("'none'")
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())
