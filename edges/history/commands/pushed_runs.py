"""The commands `runs push` and `runs pull`: runs to an archive that a team shares, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from osbench.common.errors import ArchiveError, DamagedArchive, OsbenchError, RefusedRun, UsageError
from osbench.common.secrets.url_masking import mask_url
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.option_rules import Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import option, options
from osbench.coordinator.front.cli.options.shared_options import wanted_tags
from osbench.coordinator.report.exit_code import worst
from osbench.coordinator.results.storage.run_directory import RunDirectory, run_id_of
from osbench.coordinator.results.storage.run_listing import RESUMABLE, RUNNING, run_row
from osbench.coordinator.results.storage.run_retention import check_writable
from osbench.edges.history.archives.run_archive import ArchivedRun, RunArchive
from osbench.edges.history.commands.archive_access import archive_at

_Run = TypeVar("_Run")


@click.command()
@click.argument("run", metavar="[RUN...]", nargs=-1)
@click.argument("url")
@with_settings
def push(settings: CommandSettings, run: tuple[str, ...], url: str) -> None:
    """Put runs into an archive that a team shares.

    URL is a folder, swift://CONTAINER/FOLDER, or a URL of S3 or of another store that fsspec knows,
    such as s3://BUCKET/FOLDER; the latter need `pip install 'osbench[archive]'`. Credentials of
    Swift are the variables of openrc or OS_CLOUD; S3 is as with the AWS command line, and
    AWS_ENDPOINT_URL names another server than Amazon's.

    RUN is an id, the beginning of one, or "last". Without RUN all runs that are over and not there
    yet are pushed. A run that is there stays as it is. Any number of hosts may push at once.

    \b
    Examples:
      osbench-coord runs push /net/team/runs
      osbench-coord runs push last s3://team-runs/shop
    """
    data_dir = str(settings.data_dir)
    for name in run:
        if "/" in name:
            place = mask_url(name)
            raise UsageError(f"{place} is not a run; the archive is the last argument: RUN... URL")
    # a wrong name is known before the archive is asked
    chosen = [RunDirectory.find(data_dir, name) for name in run]
    archive = archive_at(settings, url)
    if not run:
        chosen = _not_there(RunDirectory.all(data_dir), archive)
    pushed = _each(chosen, lambda one: one.path.name, archive.push, "pushed")
    _end(pushed, len(chosen), f"pushed to {archive.place}", "there already")


def _not_there(runs: Sequence[RunDirectory], archive: RunArchive) -> list[RunDirectory]:
    """Return the runs that have ended and that the archive lacks, or has without their end.

    `runs`: the candidates. Prints a note for each run that is running or can be resumed, which is
    left out.
    """
    there = {one.run_id for one in archive.runs() if one.record.finished}
    found = []
    for directory in runs:
        name = directory.path.name
        if name in there:
            continue
        state = run_row(directory)["state"]
        if state in (RUNNING, RESUMABLE):
            why = "it goes on" if state == RUNNING else "it can be resumed"
            echo(f"not pushed: run {name}: {why}", err=True)
        elif (directory.path / "run.json").exists():
            found.append(directory)
    return found


@click.command(
    cls=RuledCommand,
    rules=(
        Rule(option="RUN", why="names the runs to pull", excludes=("--task", "--tag", "--newest")),
    ),
)
@click.argument("url")
@click.argument("run", metavar="[RUN...]", nargs=-1)
@options(
    task=option("--task", metavar="TITLE", help="Runs of tasks with this title."),
    tag=wanted_tags(),
    newest=option(
        "--newest", type=click.IntRange(1), metavar="N", help="The newest N runs of these."
    ),
)
@with_settings
def pull(
    settings: CommandSettings,
    url: str,
    run: tuple[str, ...],
    task: str | None,
    tag: tuple[str, ...],
    newest: int | None,
) -> None:
    """Fetch runs of an archive into the data directory.

    URL is as in `runs push`. RUN is an id, the beginning of one, or "last". Without RUN all runs
    are pulled, or all that the options select. Runs that are in the data directory stay as they
    are; each fetched file is compared with its SHA-256.

    \b
    Examples:
      osbench-coord runs pull s3://team-runs/shop 20260401
      osbench-coord runs pull /net/team/runs --task "Nightly boot test" --newest 10
    """
    check_writable(str(settings.data_dir))
    archive = archive_at(settings, url)
    there = {one.run_id: one for one in archive.runs()}
    if not there:
        raise UsageError(archive.emptiness())
    if run:
        names = sorted(there)
        chosen = [
            there[found]
            for found in dict.fromkeys(run_id_of(one, names, archive.place) for one in run)
        ]
    else:
        chosen = [one for one in there.values() if _fits(one, task, tag)]
        if not chosen:
            raise UsageError(
                f"no run in the archive {archive.place} matches; change --task or --tag"
            )
        chosen = chosen[-newest:] if newest else chosen
    pulled = _each(chosen, lambda one: one.run_id, archive.pull, "pulled")
    _end(pulled, len(chosen), f"pulled into {settings.data_dir / 'runs'}", "here already")


def _fits(one: ArchivedRun, task: str | None, tags: Sequence[str]) -> bool:
    row = one.row()
    return task in (None, row["task"]) and set(tags) <= set(row["tags"])


def _each(
    chosen: Sequence[_Run], name: Callable[[_Run], str], step: Callable[[_Run], bool], verb: str
) -> tuple[int, int]:
    """Call `step` for each run; return how many times it did something, and an exit code.

    `name` returns a run's id and `verb` is the participle, for a line on stderr. The code is the
    worst of all runs. Raises ArchiveError if the archive itself fails; other errors, such as of a
    refused run, are printed, and the run is skipped.
    """
    done, codes = 0, [0]
    for number, one in enumerate(chosen, 1):
        try:
            if step(one):
                done += 1
                echo(f"{verb} {name(one)}, {number} of {len(chosen)}", err=True)
        except OsbenchError as error:
            if isinstance(error, ArchiveError) and not isinstance(
                error, DamagedArchive | RefusedRun
            ):
                raise
            codes.append(error.exit_code)
            echo(escaped(f"Error: {error}", breaks=True), err=True)
    return done, worst(codes)


def _end(done: tuple[int, int], chosen: int, what: str, there: str) -> None:
    """Print how many runs were moved and how many were there already; exit with the code.

    `done`: the number of moved runs, and the exit code. `chosen`: the number of all. `what` and
    `there` are the words for moved and other runs.
    """
    number, code = done
    same = chosen - number if not code else 0
    beside = f"; {count(same, 'run')} {there}" if same else ""
    echo(escaped(f"{count(number, 'run')} {what}{beside}"), err=True)
    sys.exit(code)
