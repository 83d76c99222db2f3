"""The commands `results` and `logs`: what a run measured, and what its workers wrote."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.cli.base import CommandSettings, console, with_settings
from osbench.coordinator.cli.outputs import SUMMED, show_iteration, show_summed
from osbench.coordinator.cli.run_views.damaged_runs import damaged_option, found_run
from osbench.coordinator.cli.run_views.error_view import show_errors
from osbench.coordinator.cli.run_views.iteration_view import show_one
from osbench.coordinator.cli.run_views.log_view import show_log
from osbench.coordinator.exporters import csv
from osbench.coordinator.report.iterations import iterations
from osbench.coordinator.report.rally import rally_json
from osbench.coordinator.report.summary_json import to_error_json
from osbench.coordinator.report.text import render
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.summary_file import summary_of
from osbench.coordinator.storage.timeline_file import read_timeline


@click.command()
@click.argument("run", default="last")
@click.option("--json", "form", flag_value="json", help="Print the run as one JSON object.")
@click.option("--csv", "form", flag_value="csv", help="Print every iteration as a line of CSV.")
@click.option(
    "--rally-json",
    "form",
    flag_value="rally",
    help="Print the run in the format of Rally's report.",
)
@click.option(
    "--outputs",
    is_flag=False,
    flag_value=str(SUMMED),
    type=click.IntRange(min=SUMMED),
    metavar="[ITERATION]",
    help="Print the charts made by iterations: aggregated, or those of one ITERATION.",
)
@click.option(
    "--iteration",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print all that is known of an iteration: error, traceback, actions, requests, charts.",
)
@click.option("--errors", is_flag=True, help="Print every error with its traceback.")
@damaged_option
@with_settings
def results(
    settings: CommandSettings,
    run: str,
    form: str | None,
    outputs: int | None,
    iteration: int | None,
    errors: bool,
    damaged: bool,
) -> None:
    """Print the results of a run; `report` writes them to files.

    RUN is an id, the beginning of one, or "last", which is the default. --iteration and --errors
    also show a run that goes on or was broken off. A run whose files are not as it has left them
    is refused with exit code 3; --damaged shows what is left of it.

    \b
    Examples:
      osbench-coord results
      osbench-coord results --errors
      osbench-coord results --iteration 17
      osbench-coord results 20260401 --json | jq .workloads[0].latency.service.ok.p99
      osbench-coord results last --csv > iterations.csv
      osbench-coord results last --rally-json > rally.json
      osbench-coord results last --outputs 17
    """
    parts = {"outputs": outputs is not None, "iteration": iteration is not None, "errors": errors}
    chosen = [f"--{name}" for name, given in parts.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} cannot be combined")
    if chosen and form not in (None, "json"):
        raise UsageError(f"{chosen[0]} prints text or, with --json, JSON; not --{form}")
    as_json = form == "json"
    try:
        directory = found_run(settings, run, damaged=damaged)
        if outputs is not None:
            _print_charts(directory, outputs, as_json=as_json)
        elif iteration is not None:
            show_one(directory, iteration, as_json=as_json)
        elif errors:
            show_errors(_summary_so_far(directory), as_json=as_json)
        else:
            _print(directory, form)
    except OsbenchError as error:
        if form != "json":
            raise
        click.echo(json.dumps(to_error_json(error), indent=1))
        click.get_current_context().exit(error.exit_code)


@click.command()
@click.argument("run", default="last")
@click.option(
    "--worker", metavar="WORKER", help="Only of this worker: its label, host or host:pid."
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each entry.")
@damaged_option
@with_settings
def logs(
    settings: CommandSettings,
    run: str,
    worker: str | None,
    follow: bool,
    as_json: bool,
    damaged: bool,
) -> None:
    """Print what the workers of a run printed and logged.

    Each entry has its instant, worker, workload and iteration, and stdout, stderr or the level
    of logging ([DEFAULT] log_level says from which on). Secrets are masked. The amount is limited;
    what was left out is counted. RUN is an id, the beginning of one, or "last", which is the
    default.

    \b
    Examples:
      osbench-coord logs
      osbench-coord logs 20260401 --worker rack-7
      osbench-coord logs --follow
    """
    directory = found_run(settings, run, damaged=damaged)
    show_log(directory, worker=worker, follow=follow, as_json=as_json)


def _print(directory: RunDirectory, form: str | None) -> None:
    if form == "csv":
        csv.write(iterations(directory, summary_of(directory)), sys.stdout, directory.damage)
    elif form == "rally":
        rally_json.write(directory, read_summary(directory), sys.stdout)
    elif form == "json":
        click.echo(json.dumps(read_summary(directory), indent=1))
    else:
        render(read_summary(directory), console())


def _summary_so_far(directory: RunDirectory) -> dict[str, Any]:
    """That of a finished run, else what its last checkpoint says. Raises UsageError."""
    timeline = None if summary_of(directory) is not None else read_timeline(directory)
    found: dict[str, Any] = timeline["summary"] if timeline else read_summary(directory)
    return found


def _print_charts(directory: RunDirectory, iteration: int, *, as_json: bool) -> None:
    if iteration == SUMMED:
        show_summed(read_summary(directory), as_json=as_json)
    else:
        show_iteration(directory, iteration, as_json=as_json)


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """The JSON object of a finished run. Raises UsageError if there is none that can be read."""
    summary = summary_of(directory)
    if summary is None:
        raise UsageError(_unfinished(directory))
    return summary


def _unfinished(directory: RunDirectory) -> str:
    name = directory.path.name
    if directory.has_coordinator():
        return f"run {name} is still running; `osbench-coord status {name}` shows its progress"
    message = f"run {name} ended without a report: {failure.reason(directory)}"
    if any(directory.blocks()):
        message += f"; `osbench-coord results {name} --csv` prints the iterations it reported"
    return message
