"""Writes the page of several runs: a table of all, then the first screen of each report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from osbench.coordinator.formatting import plain
from osbench.coordinator.report.exit_code import meaning
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.report.html.overview_view import AccountingView
from osbench.coordinator.report.html.page import PageViews, template_of
from osbench.coordinator.report.html.page_numbers import NARROW, counted_noun
from osbench.coordinator.report.page_facts import PageFacts


@dataclass(frozen=True, kw_only=True)
class RunOnPage:
    """A task file and the run of its task, as input of the page of several runs."""

    #: Name of the task file.
    file: str
    #: None if the task was not run.
    exit_code: int | None
    #: None if the run could not begin, or cannot be read.
    facts: PageFacts | None = None
    #: Why the run could not begin, was not made or cannot be read; "" otherwise.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class _TaskRow:
    """A task in the table, and the first screen of its run's report."""

    file: str
    exit_code: int | None
    #: What the exit code means, or why there is no run.
    said: str
    #: Address of the run's own report, relative to the page; "" if it has none.
    report: str = ""
    run_id: str = ""
    #: Prefix of the anchors of this run.
    mark: str
    #: Numbers of iterations; None without a report.
    accounting: AccountingView | None = None
    overview: Markup | None = None

    @property
    def look(self) -> str:
        """Class of the style of the row: ok for exit code 0, warn for 4, 5 and no run, else err."""
        return "ok" if self.exit_code == 0 else "warn" if self.exit_code in (4, 5, None) else "err"


def reports_folder(page: Path) -> Path:
    """Return the folder of the reports that belong to a page of several runs."""
    return page.with_name(f"{page.stem}-runs")


def write_runs_page(path: Path, title: str, runs: Iterable[RunOnPage], exit_code: int) -> None:
    """Write the page of several runs to `path`, and a report per run to `reports_folder`.

    A run without facts is only named with its error. `exit_code`: of all runs together. Raises
    OSError.
    """
    folder = reports_folder(path)
    rows = [_row(one, folder, f"t{number}-") for number, one in enumerate(runs, 1)]
    dropped = sum(row.accounting.counts["dropped"] for row in rows if row.accounting)
    path.write_text(
        template_of("runs.html.j2").render(
            NB=NARROW,
            title=plain(title, 200),
            rows=rows,
            bad=[row for row in rows if row.exit_code != 0],
            tasks=counted_noun(len(rows), "task"),
            exit_code=exit_code,
            meaning=meaning(exit_code, dropped),
            # osbench's own, and no word of a run in them
            policy=Markup(page_assets.still_policy()),  # noqa: S704
            style=Markup(page_assets.style()),  # noqa: S704
        ),
        "utf-8",
    )


def _row(run: RunOnPage, folder: Path, mark: str) -> _TaskRow:
    row = _TaskRow(
        file=plain(run.file, 100),
        exit_code=run.exit_code,
        said=plain(" ".join(run.error.split()) or meaning(run.exit_code or 0), 500),
        mark=mark,
    )
    facts = run.facts
    if facts is None:
        return row
    views, name = PageViews.of(facts), f"{facts.run_id}.html"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(views.page(facts), "utf-8")
    report = quote(f"{folder.name}/{name}")
    # the template escapes what it is given
    first = template_of("overview.j2").render(views.context(report, mark))
    return replace(
        row,
        said=plain(facts.report.exit_meaning, 500) or row.said,
        report=report,
        run_id=views.head.run_id,
        accounting=views.overview.accounting,
        overview=Markup(first),  # noqa: S704 - as above
    )
