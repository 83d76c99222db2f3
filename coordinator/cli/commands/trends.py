"""The command `trends`: percentiles over the runs of a task, and where they changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, console, with_settings, write_file
from osbench.coordinator.cli.comparison_options import html_option, json_option
from osbench.coordinator.comparison.compared_run import ComparedRun, finished_runs
from osbench.coordinator.comparison.comparison_json import trends_json
from osbench.coordinator.comparison.comparison_page import trends_page
from osbench.coordinator.comparison.comparison_text import show_trend
from osbench.coordinator.comparison.trends import trend_of

#: Runs of a trend, unless stated otherwise.
_LAST = 60


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
@json_option
@html_option
@with_settings
def trends(
    settings: CommandSettings,
    task: str | None,
    fingerprint: str | None,
    tag: tuple[str, ...],
    last: int,
    as_json: bool,
    page: Path | None,
) -> None:
    """Show percentiles over runs, and where they changed for good.

    Runs belong together where task, load, deployment and number of workers are the same: they
    have the same fingerprint. Without --task or --fingerprint the trend is that of the newest
    run. Changes are looked for from 8 runs on; runs whose load was not the one asked for are left
    out.

    \b
    Examples:
      osbench-coord trends
      osbench-coord trends --task "Nightly boot test" --html trends.html
      osbench-coord trends --json | jq '.trends[].series[].changes'
    """
    finished = finished_runs(str(settings.conf.data_dir), tag)
    groups = _groups(run for run in finished if task in (None, run.manifest.get("task")))
    if fingerprint is not None:
        groups = {name: runs for name, runs in groups.items() if name.startswith(fingerprint)}
    if not groups:
        raise UsageError("no finished run matches")
    if task is None and fingerprint is None:
        newest = max(groups, key=lambda name: groups[name][-1].run_id)
        groups = {newest: groups[newest]}
    found = [trend_of(runs[-last:]) for runs in groups.values()]
    if page is not None:
        write_file(page, trends_page(found))
    if as_json:
        click.echo(json.dumps(trends_json(found), indent=1))
        return
    for number, trend in enumerate(found):
        if number:
            click.echo()
        show_trend(trend, console())


def _groups(runs: Iterable[ComparedRun]) -> dict[str, list[ComparedRun]]:
    found: dict[str, list[ComparedRun]] = {}
    for run in runs:
        found.setdefault(run.fingerprint, []).append(run)
    return found
