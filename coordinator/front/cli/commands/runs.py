"""The commands `runs`, `status`, `wait`, `control` and `abort`, for runs of this data directory."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, plain, size
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    FiniteRange,
    console,
    echo,
    echo_json,
    echo_table,
    with_settings,
)
from osbench.coordinator.front.cli.listed_command import OpenGroup
from osbench.coordinator.front.cli.options.option_rules import Alternatives, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    flag,
    option,
    options,
)
from osbench.coordinator.front.cli.options.shared_options import (
    archive_url,
    damaged_flag,
    json_flag,
    wanted_tags,
    workload_name,
)
from osbench.coordinator.front.cli.run_views import following
from osbench.coordinator.front.cli.run_views.damaged_runs import found_run, warn_of
from osbench.coordinator.front.cli.time_limit import timeout_option
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.text import render
from osbench.coordinator.results.storage import control_requests, run_retention
from osbench.coordinator.results.storage.progress import age_words, done_words, longest_words
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of
from osbench.coordinator.results.storage.run_index import rows_of
from osbench.coordinator.results.storage.run_listing import RESUMABLE, run_row
from osbench.coordinator.results.storage.run_retention import check_writable
from osbench.coordinator.results.storage.run_store import open_store
from osbench.coordinator.text_table import TextTable, figures, names, texts

COLUMNS = (
    *names("run"),
    *texts("task"),
    *names("state", "exit"),
    *figures("planned", "ok", "size"),
    *texts("tags", "why"),
)


class RunsGroup(OpenGroup):
    """The commands `runs`, to which packages add theirs as entry points `osbench.runs_command`."""

    kind = "runs_command"


@click.group(cls=RunsGroup)
def runs() -> None:
    """List, show, delete, prune and share runs."""


@runs.command("list")
@options(
    tag=wanted_tags(),
    archive=archive_url("The runs of an archive instead"),
    as_json=json_flag("a list"),
)
@with_settings
def list_(
    settings: CommandSettings, tag: tuple[str, ...], archive: str | None, as_json: bool
) -> None:
    """List runs, newest first.

    Shows their size and, if one was broken off, the reason. `resume` goes on with resumable
    runs.

    \b
    Examples:
      osbench-coord runs list
      osbench-coord runs list --tag nightly --json
      osbench-coord runs list --archive s3://team-runs/shop
    """
    if archive is None:
        data_dir = settings.conf.data_dir
        found = rows_of(data_dir, RunDirectory.all(data_dir)[::-1])
        if not found:
            check_writable(data_dir)
            echo(f"no runs in {settings.data_dir / 'runs'}", err=True)
    else:
        there = open_store(archive, str(settings.data_dir), warn_of)
        found = [one.row() for one in there.runs()[::-1]]
        if not found:
            echo(there.emptiness(), err=True)
    rows = [row for row in found if set(tag) <= set(row["tags"])]
    if as_json:
        echo_json(rows)
        return
    echo_table(_table(rows))


def _table(rows: Sequence[Mapping[str, Any]]) -> TextTable:
    table = TextTable(COLUMNS)
    for row in rows:
        cells = {
            **row,
            "size": size(row["size_bytes"]),
            "why": plain(row["why"] or "", 90),
        }
        table.add_row(*(_cell(cells[column.heading]) for column in COLUMNS))
    return table


@runs.command()
@click.argument("run", default="last")
@options(damaged=damaged_flag())
@with_settings
def show(settings: CommandSettings, run: str, damaged: bool) -> None:
    """Print the report of a run, or its progress, or why it has no report.

    RUN is an id, the beginning of one, or "last".

    \b
    Examples:
      osbench-coord runs show
      osbench-coord runs show 20260401
    """
    directory = found_run(settings, run, damaged=damaged)
    summary = summary_of(directory)
    if summary is not None:
        render(Report.from_json(summary), console(), details=True)
    else:
        echo(_status(directory, settings))


@runs.command()
@click.argument("run", nargs=-1, required=True)
@options(force=flag("--force", help="Delete runs even if resources that they made are left."))
@with_settings
def delete(settings: CommandSettings, run: tuple[str, ...], force: bool) -> None:
    """Delete runs with all their results.

    RUN is an id, the beginning of one, or "last". A run is not deleted while it is running, nor
    while its contexts have resources left in the cloud, which `cleanup` removes.

    \b
    Examples:
      osbench-coord runs delete 20260401-101500 20260401-104500
      osbench-coord runs delete last --force
    """
    # all of them are found before the first is gone: "last" is another one then
    found = {one.path: one for one in (RunDirectory.find(_data_dir(settings), n) for n in run)}
    for directory in found.values():
        directory.delete(force=force)
        echo(f"deleted {directory.path.name}", err=True)


@runs.command(
    cls=RuledCommand,
    rules=(
        Alternatives(
            of=("--keep", "--older-than"),
            missing="no runs to keep are given",
            remedy="both may be given",
        ),
    ),
)
@options(
    keep=option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs."),
    older_than=option(
        "--older-than", metavar="AGE", help="Keep younger runs; 45s, 90m, 12h, 30d or 4w."
    ),
    yes=flag("--yes", help="Do not ask."),
    force=flag("--force", help="Delete runs even if resources are left."),
)
@with_settings
def prune(
    settings: CommandSettings, keep: int | None, older_than: str | None, yes: bool, force: bool
) -> None:
    """Delete old runs with all their results.

    With both --keep and --older-than a run is deleted only if neither keeps it. Runs that are
    running or have resources left in the cloud are never deleted; --force deletes the latter.

    \b
    Examples:
      osbench-coord runs prune --keep 20
      osbench-coord runs prune --keep 20 --older-than 30d --yes
    """
    limit_s = None if older_than is None else run_retention.age_s(older_than)
    every = RunDirectory.all(_data_dir(settings))
    old = run_retention.superfluous(every, keep=keep, older_than_s=limit_s, now_at=time.time())
    removable = []
    for directory in old:
        refusal = directory.refusal()
        if refusal and not (force and not directory.has_coordinator()):
            echo(f"kept: {refusal}", err=True)
        else:
            removable.append(directory)
    if not removable:
        echo("no run to delete", err=True)
        return
    freed = size(sum(map(run_retention.size_bytes, removable)))
    if not yes:
        span = " to ".join(dict.fromkeys(one.path.name for one in (removable[0], removable[-1])))
        click.confirm(
            f"delete {count(len(removable), 'run')}, {freed}: {span}?", abort=True, err=True
        )
    for directory in removable:
        directory.delete(force=force)
        echo(f"deleted {directory.path.name}", err=True)
    echo(f"{count(len(removable), 'run')} deleted, {freed} freed", err=True)


@click.command()
@click.argument("run", default="last")
@options(
    follow=flag("--follow", "-f", help="Go on, a line a second, until the run ends."),
    as_json=json_flag("an object, or with --follow one a line each second"),
)
@with_settings
def status(settings: CommandSettings, run: str, follow: bool, as_json: bool) -> None:
    """Show the progress of a run, or how it ended.

    With --follow: rate, percentiles and errors of the last 10 s, and the most frequent error of
    them; at the end how the run ended. RUN is an id, the beginning of one, or "last", which is
    the default.

    \b
    Examples:
      osbench-coord status
      osbench-coord status 20260401 --json
      osbench-coord status --follow
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    for note in following.progress(directory) if follow else ():
        if as_json:
            echo_json({**run_row(directory), "status": note})
        else:
            echo("\n".join(following.lines(note)))
    # a damaged run is refused, as by other commands
    summary_of(directory)
    if as_json:
        echo_json({**run_row(directory), "status": directory.read("status.json")})
    else:
        echo(_status(directory, settings))


@click.command()
@click.argument("run", default="last")
@with_settings
def wait(settings: CommandSettings, run: str) -> None:
    """Wait for a run to end, and exit with its code.

    Exit codes are as of `run`; 3 if the run's coordinator was killed. RUN is an id, the
    beginning of one, or "last", which is the default. The coordinator must be on this machine.

    \b
    Examples:
      osbench-coord wait
      osbench-coord wait 20260401 && echo the SLA is met
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    following.await_end(directory)
    echo(_status(directory, settings), err=True)
    sys.exit(following.exit_code(directory))


@click.command()
@click.argument("run", default="last")
@options(now=flag("--now", help="Do not wait for running iterations."))
@timeout_option(control_requests.SEEN_S)
@with_settings
def abort(settings: CommandSettings, run: str, now: bool, timeout_s: float) -> None:
    """End a run as Ctrl-C would.

    Its coordinator must be on this machine, or share the data directory and its locks: the request
    goes through the run directory. Running iterations end and the run reports; with --now
    they are abandoned. RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord abort
      osbench-coord abort 20260401 --now
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    echo(control_requests.abort(directory, now=now, timeout_s=timeout_s), err=True)


@click.command(
    cls=RuledCommand,
    rules=(
        Alternatives(
            of=("--rate", "--users", "--pause", "--resume-load"),
            missing="no change is given",
            single="`control` changes one thing at a time",
        ),
    ),
)
@click.argument("run", default="last")
@options(
    workload=workload_name(),
    rate=option(
        "--rate", "--rps", type=FiniteRange(0), metavar="N", help="Arrivals/s of an open load."
    ),
    users=option(
        "--users",
        "--concurrency",
        type=click.IntRange(0),
        metavar="N",
        help="Virtual users of a closed load.",
    ),
    pause=flag("--pause", help="Start no iterations until another `control`."),
    resume_load=flag("--resume-load", help="Go on as the task says."),
)
@with_settings
def control(
    settings: CommandSettings,
    run: str,
    workload: str | None,
    rate: float | None,
    users: int | None,
    pause: bool,
    resume_load: bool,
) -> None:
    """Change the load of a run in progress.

    Its coordinator must be on this machine. A new rate, or number of users, holds until the end of
    the load or another `control`. Charts and report show when it was changed. RUN is an id, the
    beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord control --rate 200
      osbench-coord control 20260401 --workload 1 --users 50
      osbench-coord control --pause
    """
    wanted = {
        "rate": rate,
        "users": users,
        "pause": pause or None,
        "resume_load": resume_load or None,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    directory = RunDirectory.find(settings.conf.data_dir, run)
    echo(control_requests.ask(directory, {"workload": workload, **given}), err=True)


def _data_dir(settings: CommandSettings) -> str:
    return str(settings.conf.data_dir)


def _status(directory: RunDirectory, settings: CommandSettings) -> str:
    row = run_row(directory)
    if row["state"] == RESUMABLE:
        return f"{_state(row, directory)}{_how_to_go_on(directory, settings)}"
    return _state(row, directory)


def _how_to_go_on(directory: RunDirectory, settings: CommandSettings) -> str:
    conf, name = settings.conf, directory.path.name
    text = f"\n`osbench-coord resume {name}` continues it"
    note = directory.read("status.json")
    if note is not None and conf.messaging.redis_url:
        free_at = note["at"] + conf.worker.coordinator_lost_s
        clock = time.strftime("%H:%M:%S", time.localtime(free_at))
        if free_at > time.time():
            text += f"; its workers wait until {clock}"
        else:
            text += f"; its workers waited until {clock}, others take their place"
    if (directory.path / "contexts").exists():
        text += f"\n`osbench-coord cleanup {name}` undoes its contexts instead"
    return text


def _state(row: dict[str, Any], directory: RunDirectory) -> str:
    text = f"run {row['run']} ({plain(row['task'])}): {row['state']}"
    if row["exit"] is not None:
        text += f", exit code {row['exit']}"
    if row["why"] is not None:
        return f"{text}: {escaped(row['why'], breaks=True)}"
    if row["state"] == "finished":
        return text
    note = directory.read("status.json")
    if note is None:
        return text
    text += f"; {plain(note['name'])} {plain(note['phase'])} for {note['elapsed_s']:.0f} s: "
    if note.get("workload", 0) < 0:
        return f"{text}{done_words(note)}; {age_words(note)}"
    return (
        f"{text}{done_words(note)}, {note['failed']} failed, {note['busy']} in flight "
        f"on {count(note['workers'], 'worker')}{plain(longest_words(note))}; {age_words(note)}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return count(value)
    return plain(", ".join(value) if isinstance(value, list) else str(value))
