"""The command `results`: the numbers of a run again, as text, JSON or CSV."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console

from osbench.common.blocks import Failure, decode_rows
from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.cli.common import Settings, with_settings
from osbench.coordinator.report import rally_json
from osbench.coordinator.report.rows import CsvRows
from osbench.coordinator.report.summary import FORMAT, to_error_json
from osbench.coordinator.report.text import render
from osbench.coordinator.rundir import RunDirectory

#: File of the run directory that holds the run's JSON object.
SUMMARY = "summary.json"


@click.command()
@click.argument("run")
@click.option("--json", "form", flag_value="json", help="Print the run as one JSON object.")
@click.option("--csv", "form", flag_value="csv", help="Print every iteration as a line of CSV.")
@click.option(
    "--rally-json", "form", flag_value="rally", help="Print the run as Rally's task report does."
)
@with_settings
def results(settings: Settings, run: str, form: str | None) -> None:
    """Print the results of RUN again: an id, the beginning of one, or "last".

    \b
    Examples:
      osbench-coord results last
      osbench-coord results 20260401 --json | jq .workloads[0].latency.service.ok.p99
      osbench-coord results last --csv > iterations.csv
      osbench-coord results last --rally-json > rally.json
    """
    try:
        directory = RunDirectory.find(str(settings.data_dir), run)
        if form == "csv":
            _print_rows(directory)
        elif form == "rally":
            rally_json.write(directory, read_summary(directory), sys.stdout)
        elif form == "json":
            click.echo(json.dumps(read_summary(directory), indent=1))
        else:
            render(read_summary(directory), Console())
    except OsbenchError as error:
        if form != "json":
            raise
        click.echo(json.dumps(to_error_json(error), indent=1))
        click.get_current_context().exit(error.exit_code)


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """The JSON object of a finished run. Raises UsageError where there is none to be read."""
    path = directory.path / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"run {directory.path.name} has no summary: it has not ended, or not well;"
            " --csv prints the iterations it reported"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    found = summary.get("format") if isinstance(summary, dict) else None
    if not isinstance(summary, dict) or found != FORMAT:
        raise UsageError(f"{path} has format {found}; this version of osbench reads {FORMAT}")
    return summary


def _print_rows(directory: RunDirectory) -> None:
    rows = CsvRows(sys.stdout)
    for body in directory.blocks():
        failures = [
            Failure(number=number, etype=etype, message=message, traceback=traceback)
            for number, etype, message, traceback in body["failures"]
        ]
        if body["columns"]:
            columns = decode_rows(body["columns"])
            rows.write(body["workload"], body["incarnation"], columns, failures)
