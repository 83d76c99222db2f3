"""The commands `runs`, `status` and `abort`, for past and current runs of this data directory."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, Group, echo_table, with_settings
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.report.text import render
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory

COLUMNS = ("run", "task", "state", "exit", "planned", "ok", "tags", "why")


@click.group(cls=Group)
def runs() -> None:
    """List, show and delete the runs in the data directory."""


@runs.command("list")
@click.option("--tag", multiple=True, help="Only runs with this tag; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
@with_settings
def list_(settings: CommandSettings, tag: tuple[str, ...], as_json: bool) -> None:
    """List runs, oldest first, with the reason if one was broken off.

    \b
    Examples:
      osbench-coord runs list
      osbench-coord runs list --tag nightly --json
    """
    found = [described(one) for one in RunDirectory.all(settings.conf.data_dir)]
    rows = [row for row in found if set(tag) <= set(row["tags"])]
    if as_json:
        click.echo(json.dumps(rows))
        return
    table = Table(*COLUMNS, box=None)
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in COLUMNS[:-1]), plain(row["why"] or "", 90))
    echo_table(table)


@runs.command()
@click.argument("run", default="last")
@with_settings
def show(settings: CommandSettings, run: str) -> None:
    """Print the report of a run, or its progress, or why it has no report.

    RUN is an id, the beginning of one, or "last".

    \b
    Examples:
      osbench-coord runs show
      osbench-coord runs show 20260401
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    summary = directory.read("summary.json")
    if summary is not None:
        render(summary, Console())
    else:
        click.echo(_status(directory))


@runs.command()
@click.argument("run", nargs=-1, required=True)
@with_settings
def delete(settings: CommandSettings, run: tuple[str, ...]) -> None:
    """Delete runs with all their results.

    RUN is an id, the beginning of one, or "last".

    \b
    Example:
      osbench-coord runs delete 20260401-101500 20260401-104500
    """
    for name in run:
        directory = RunDirectory.find(settings.conf.data_dir, name)
        directory.delete()
        click.echo(f"deleted {directory.path.name}", err=True)


@click.command()
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
@with_settings
def status(settings: CommandSettings, run: str, as_json: bool) -> None:
    """Show the progress of a run, or how it ended.

    RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord status
      osbench-coord status 20260401 --json
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    if as_json:
        click.echo(json.dumps({**described(directory), "status": directory.read("status.json")}))
    else:
        click.echo(_status(directory))


@click.command()
@click.argument("run", default="last")
@click.option("--now", is_flag=True, help="Do not wait for running iterations.")
@with_settings
def abort(settings: CommandSettings, run: str, now: bool) -> None:
    """End a run as Ctrl-C would.

    Its coordinator must be on this machine. Running iterations end and the run reports; with
    --now they are abandoned. RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord abort
      osbench-coord abort 20260401 --now
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    holder = directory.coordinator()
    if not holder:
        raise UsageError(f"run {directory.path.name} is not running on this machine")
    for _ in range(2 if now else 1):
        os.kill(holder, signal.SIGINT)
    click.echo(f"asked run {directory.path.name} to end", err=True)


def described(directory: RunDirectory) -> dict[str, Any]:
    """One run as `runs list` shows it."""
    asked = directory.read("run.json") or {}
    summary = directory.read("summary.json")
    found: dict[str, Any] = {
        "run": directory.path.name,
        "task": asked.get("task", ""),
        "tags": asked.get("tags", []),
        "state": "finished" if summary else "running" if directory.coordinator() else "broken off",
        "exit": summary["exit_code"] if summary else None,
        "planned": None,
        "ok": None,
        "why": None,
    }
    if found["state"] == "broken off":
        found |= {"exit": failure.exit_code(directory), "why": failure.reason(directory)}
    if summary:
        sums = [workload["accounting"] for workload in summary["workloads"]]
        found["planned"] = sum(one["planned"] for one in sums)
        found["ok"] = sum(one["ok"] for one in sums)
    return found


def _status(directory: RunDirectory) -> str:
    row = described(directory)
    text = f"run {row['run']} ({row['task']}): {row['state']}"
    if row["exit"] is not None:
        text += f", exit code {row['exit']}"
    if row["why"] is not None:
        return f"{text}: {row['why']}"
    if row["state"] == "finished":
        return text
    note = directory.read("status.json")
    if note is None:
        return text
    plan = f" of {note['planned']}" if note["planned"] is not None else ""
    return (
        f"{text}; {note['name']} {note['phase']} for {note['elapsed_s']:.0f} s: "
        f"{note['settled']}{plan} done, {note['failed']} failed, {note['busy']} running "
        f"on {count(note['workers'], 'worker')}"
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(value) if isinstance(value, list) else str(value)
