"""Options of the commands that compare runs, and their output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import UsageError
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings, console, echo_json, write_file
from osbench.coordinator.front.cli.options.option_table import OptionSet, flag, option
from osbench.coordinator.front.cli.options.shared_options import damaged_flag, json_flag, page_file
from osbench.coordinator.front.cli.run_views.damaged_runs import found_run, warn_of
from osbench.coordinator.report.exit_code import meaning
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.history.archives.run_archive import ArchivedRun
from osbench.edges.history.commands.archive_access import run_of_both
from osbench.edges.history.comparison.compared_run import (
    ComparedRun,
    finished_runs,
    read_compared_run,
)
from osbench.edges.history.comparison.comparison_json import comparison_json
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.comparison_result import ChangeVerdict, ComparisonResult
from osbench.edges.history.comparison.comparison_text import show_comparison

#: Begins the name of all runs with a tag.
TAG = "tag:"
#: Runs that are left out and named.
_NAMED = 5


class ShareType(click.ParamType[float]):
    """A fraction between 0 and 1 on the command line, such as 3% or 0.03."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a string to a fraction, 0 and 1 excluded; fails with a usage error otherwise."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 < share < 1:
            self.fail(f"{value!r} is not a share such as 3% or 0.03", param, ctx)
        return share


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions(OptionSet):
    """Options for a comparison of runs and for its output."""

    SECTION = "Comparison"

    #: Share of change that counts as none.
    margin: float | None = option(
        "--margin",
        type=ShareType(),
        metavar="SHARE",
        help="Ignore changes smaller than this, such as 3%; allows the verdict `equivalent`.",
    )
    #: Compare what should not be compared.
    anyway: bool = flag(
        "--anyway",
        help="Compare even if the loads differ, or if the load generator was the limit.",
    )
    #: Read runs whose files are cut or changed, and leave out damaged runs that were not named.
    damaged: bool = damaged_flag()
    as_json: bool = json_flag()
    #: Path of a page to write.
    page: Path | None = page_file()


def read_side(
    settings: CommandSettings,
    names: Sequence[str],
    *,
    damaged: bool = False,
    archived: Sequence[ArchivedRun] = (),
) -> list[ComparedRun]:
    """Return the runs of one side of a comparison, in the order of `names`.

    A name is an id, the beginning of one, "last", or tag:TAG for all finished runs with a tag;
    warns of runs with the tag that lacked the requested load, which are left out. `damaged`: named
    runs whose files are cut or changed are read as far as they can be, tagged ones are left out.
    `archived`: runs of an archive that names may mean, too. Raises UsageError, DamagedRun,
    ArchiveError, StorageError.
    """
    data_dir = str(settings.conf.data_dir)
    found = []
    for name in names:
        if name.startswith(TAG):
            tag = name.removeprefix(TAG)
            unsound: list[ComparedRun] = []
            tagged = [
                *finished_runs(
                    data_dir,
                    (tag,),
                    left_out=left_out(damaged),
                    unsound=unsound.append,
                    archived=archived,
                )
            ]
            warn_of_unsound(unsound)
            if not tagged:
                raise UsageError(
                    f"no finished run has the tag {tag!r}; `osbench-coord runs list` shows the tags"
                )
            found += [read_compared_run(_directory_of(run)) for run in tagged]
        elif archived:
            directory = run_of_both(settings, name, archived)
            if damaged:
                warn_of(directory.accept_damage())
            found.append(read_compared_run(directory))
        else:
            found.append(read_compared_run(found_run(settings, name, damaged=damaged)))
    return found


def warn_of_unsound(runs: Sequence[ComparedRun]) -> None:
    """Print which runs, oldest first, are left out because their load was not the requested one.

    In one line, with the newest `_NAMED` of them. Prints nothing without runs.
    """
    if len(runs) == 1:
        code = runs[0].exit_code
        warn_of(f"left out: run {runs[0].run_id} ended with exit code {code}: {meaning(code)}")
    elif runs:
        newest = [f"{run.run_id} (exit code {run.exit_code})" for run in runs[-_NAMED:]]
        more = f"{count(len(runs) - _NAMED)} earlier, " if len(runs) > _NAMED else ""
        warn_of(
            f"left out: {count(len(runs), 'run')} whose load was not the requested one: {more}"
            f"{', '.join(newest)}"
        )


def _directory_of(run: ComparedRun) -> RunDirectory:
    """Return the directory of a run of `finished_runs`; an archived run is fetched before.

    Raises ArchiveError.
    """
    if run.archived is not None:
        return run.archived.fetch()
    assert run.directory is not None
    return run.directory


def left_out(damaged: bool) -> Callable[[str], None] | None:
    """Return a handler that prints a warning for a damaged run that was not named.

    None unless `damaged`: without a handler, such a run is an error.
    """
    return warn_of if damaged else None


def show(result: ComparisonResult, chosen: ComparisonOptions) -> None:
    """Print a comparison as text or JSON, and write its page if one was requested.

    Raises UsageError if the page cannot be written.
    """
    if chosen.page is not None:
        write_file(chosen.page, compare_page(result))
    if chosen.as_json:
        echo_json(comparison_json(result), indent=1)
    else:
        show_comparison(result, console())


def exit_code(result: ComparisonResult) -> int:
    """Return 1 if something became worse, even if other things became better; else 0."""
    return int(result.verdict in (ChangeVerdict.WORSE, ChangeVerdict.MIXED))
