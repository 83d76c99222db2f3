"""The command `results`: the results of a run as text, JSON, CSV or Rally's JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.outputs import SUMMED, show_iteration, show_summed
from osbench.coordinator.exporters import csv
from osbench.coordinator.report.iterations import iterations
from osbench.coordinator.report.rally import rally_json
from osbench.coordinator.report.summary_json import to_error_json
from osbench.coordinator.report.text import render
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.summary_file import summary_of


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
@with_settings
def results(
    settings: CommandSettings,
    run: str,
    form: str | None,
    outputs: int | None,
) -> None:
    """Print the results of a run; `report` writes them to files.

    RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord results
      osbench-coord results 20260401 --json | jq .workloads[0].latency.service.ok.p99
      osbench-coord results last --csv > iterations.csv
      osbench-coord results last --rally-json > rally.json
      osbench-coord results last --outputs 17
    """
    if outputs is not None and form not in (None, "json"):
        raise UsageError(f"--outputs prints text or, with --json, JSON; not --{form}")
    try:
        directory = RunDirectory.find(str(settings.data_dir), run)
        if outputs is not None:
            _print_charts(directory, outputs, as_json=form == "json")
        else:
            _print(directory, form)
    except OsbenchError as error:
        if form != "json":
            raise
        click.echo(json.dumps(to_error_json(error), indent=1))
        click.get_current_context().exit(error.exit_code)


def _print(directory: RunDirectory, form: str | None) -> None:
    if form == "csv":
        csv.write(iterations(directory, summary_of(directory)), sys.stdout)
    elif form == "rally":
        rally_json.write(directory, read_summary(directory), sys.stdout)
    elif form == "json":
        click.echo(json.dumps(read_summary(directory), indent=1))
    else:
        render(read_summary(directory), Console())


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
    if directory.coordinator():
        return f"run {name} is still running; `osbench-coord status {name}` shows its progress"
    message = f"run {name} ended without a report: {failure.reason(directory)}"
    if any(directory.blocks()):
        message += f"; `osbench-coord results {name} --csv` prints the iterations it reported"
    return message
