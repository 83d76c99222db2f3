"""The command `trends`: percentiles over the runs of a task, and where they changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, console, with_settings, write_file
from osbench.coordinator.cli.comparison_options import html_option, json_option, left_out
from osbench.coordinator.cli.run_views.damaged_runs import damaged_option
from osbench.coordinator.comparison.compared_run import ComparedRun, finished_runs
from osbench.coordinator.comparison.comparison_json import staircases_json, trends_json
from osbench.coordinator.comparison.comparison_page import trends_page
from osbench.coordinator.comparison.comparison_text import show_staircase, show_trend
from osbench.coordinator.comparison.load_series import staircases_of
from osbench.coordinator.comparison.staircase_page import staircases_page
from osbench.coordinator.comparison.trends import trend_of

#: Runs of a trend, unless stated otherwise.
_LAST = 60

_Shown = TypeVar("_Shown")


@click.command()
@click.option("--task", metavar="TITLE", help="Runs of tasks with this title.")
@click.option(
    "--fingerprint", metavar="ID", help="Runs with this fingerprint, or the beginning of one."
)
@click.option("--tag", multiple=True, help="Only runs with this tag; may be repeated.")
@click.option(
    "--last",
    type=click.IntRange(2),
    default=_LAST,
    show_default=True,
    metavar="N",
    help="Newest runs of each fingerprint.",
)
@click.option(
    "--by-load",
    is_flag=True,
    help="Runs that differ in their rate or virtual users alone, by load in place of time.",
)
@damaged_option
@json_option
@html_option
@with_settings
def trends(  # noqa: PLR0913 - one per option of the command
    settings: CommandSettings,
    task: str | None,
    fingerprint: str | None,
    tag: tuple[str, ...],
    last: int,
    by_load: bool,
    damaged: bool,
    as_json: bool,
    page: Path | None,
) -> None:
    """Show percentiles over runs, and where they changed for good.

    Runs belong together where task, load, deployment and number of workers are the same: they
    have the same fingerprint. Without --task or --fingerprint the trend is that of the newest
    run. Changes are looked for from 8 runs on; runs whose load was not the one asked for are left
    out. A run whose files are cut or changed ends the command; --damaged leaves it out.

    With --by-load runs belong together whose loads differ and nothing else: throughput and
    latency by load, the knee, and from six loads on how throughput scales.

    \b
    Examples:
      osbench-coord trends
      osbench-coord trends --task "Nightly boot test" --html trends.html
      osbench-coord trends --by-load --task "Nightly boot test"
      osbench-coord trends --json | jq '.trends[].series[].changes'
    """
    if by_load and fingerprint is not None:
        raise UsageError("--by-load takes no --fingerprint: the loads of its runs differ")
    finished = finished_runs(str(settings.conf.data_dir), tag, left_out=left_out(damaged))
    chosen = (run for run in finished if task in (None, run.manifest.get("task")))
    groups = _groups(chosen, by_load)
    if fingerprint is not None:
        groups = {name: runs for name, runs in groups.items() if name.startswith(fingerprint)}
    if not groups:
        raise UsageError("no finished run matches")
    if task is None and fingerprint is None:
        newest = max(groups, key=lambda name: groups[name][-1].run_id)
        groups = {newest: groups[newest]}
    newest_runs = [runs[-last:] for runs in groups.values()]
    if by_load:
        stairs = [one for runs in newest_runs for one in staircases_of(runs)]
        if not stairs:
            raise UsageError(
                "no two finished runs differ in their load alone: run the task at several rates"
                " or numbers of virtual users"
            )
        _write(page, as_json, staircases_page, staircases_json, show_staircase, stairs)
        return
    found = [trend_of(runs) for runs in newest_runs]
    _write(page, as_json, trends_page, trends_json, show_trend, found)


def _write(
    page: Path | None,
    as_json: bool,
    to_page: Callable[[Sequence[_Shown]], str],
    to_json: Callable[[Sequence[_Shown]], dict[str, Any]],
    show: Callable[[_Shown, Console], None],
    found: Sequence[_Shown],
) -> None:
    if page is not None:
        write_file(page, to_page(found))
    if as_json:
        click.echo(json.dumps(to_json(found), indent=1))
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        show(one, console())


def _groups(runs: Iterable[ComparedRun], by_load: bool) -> dict[str, list[ComparedRun]]:
    found: dict[str, list[ComparedRun]] = {}
    for run in runs:
        found.setdefault(run.kinship if by_load else run.fingerprint, []).append(run)
    return found
