"""Writes the page of several runs: a table of all, then the first screen of each report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from osbench.coordinator.formatting import plain
from osbench.coordinator.report.exit_code import meaning
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.report.html.page import PageViews, render_page, template_of
from osbench.coordinator.report.html.page_numbers import NARROW, counted
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
    """A task in the table, with the views of its run's report."""

    file: str
    exit_code: int | None
    #: What the exit code means, or why there is no run.
    said: str
    #: Address of the run's own report, relative to the page; "" if it has none.
    report: str
    views: PageViews | None

    @property
    def look(self) -> str:
        """Class of the style of the row: ok for exit code 0, warn for 4, 5 and no run, else err."""
        return "ok" if self.exit_code == 0 else "warn" if self.exit_code in (4, 5, None) else "err"


def write_runs_page(path: Path, title: str, runs: Iterable[RunOnPage], exit_code: int) -> None:
    """Write the page of several runs to `path`, and the report of each in a folder next to it.

    The folder has the name of the page without its suffix. A run without facts is only named with
    its error. `exit_code`: of all runs together. Raises OSError.
    """
    folder = path.with_suffix("")
    rows = [_row(one, folder) for one in runs]
    bad = [row for row in rows if row.exit_code != 0]
    path.write_text(
        template_of("runs.html.j2").render(
            NB=NARROW,
            title=plain(title, 200),
            rows=rows,
            overviews=[_overview(row, f"t{number}-") for number, row in enumerate(rows, 1)],
            bad=bad,
            tasks=counted(len(rows), "task"),
            exit_code=exit_code,
            meaning=meaning(exit_code),
            # osbench's own, and no word of a run in them
            policy=Markup(page_assets.still_policy()),  # noqa: S704
            style=Markup(page_assets.style()),  # noqa: S704
        ),
        "utf-8",
    )


def _row(run: RunOnPage, folder: Path) -> _TaskRow:
    report, views = "", None
    if run.facts is not None:
        name = f"{run.facts.run_id}.html"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(render_page(run.facts), "utf-8")
        report, views = quote(f"{folder.name}/{name}"), PageViews.of(run.facts)
    return _TaskRow(
        file=plain(run.file, 100),
        exit_code=run.exit_code,
        said=plain(" ".join(run.error.split()) or meaning(run.exit_code or 0), 500),
        report=report,
        views=views,
    )


def _overview(row: _TaskRow, mark: str) -> Markup:
    """Return HTML of the first screen of a run; its links lead to the run's own report.

    `mark` is the prefix of its anchors; "" without views.
    """
    if row.views is None:
        return Markup("")
    context = row.views.context(row.report, mark)
    # the template escapes what it is given
    return Markup(template_of("overview.j2").render(context))  # noqa: S704
