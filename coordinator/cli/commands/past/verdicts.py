"""The command `sla`: the verdicts of a run, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click
from rich.table import Table

from osbench.coordinator.cli.base import CommandSettings, echo_table, with_settings
from osbench.coordinator.cli.commands.results import read_summary
from osbench.coordinator.cli.run_views.damaged_runs import damaged_option, found_run
from osbench.coordinator.formatting import plain

COLUMNS = ("workload", "criterion", "verdict", "detail")


@click.command()
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="A JSON list, one object per criterion.")
@damaged_option
@with_settings
def sla(settings: CommandSettings, run: str, as_json: bool, damaged: bool) -> None:
    """Print the verdicts of a run, and exit with its exit code.

    That is 1 if a criterion failed, and another code if the run was not what was asked for; see
    `run --help`. RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord sla
      osbench-coord sla 20260401 --json
    """
    summary = read_summary(found_run(settings, run, damaged=damaged))
    rows = list(_rows(summary))
    if as_json:
        click.echo(json.dumps(rows))
    else:
        table = Table(*COLUMNS, box=None)
        for row in rows:
            verdict = "passed" if row["success"] else "FAILED"
            place = f"{row['workload']}. {plain(row['name'])}"
            table.add_row(place, plain(row["criterion"]), verdict, plain(row["detail"], 200))
        echo_table(table)
        click.echo(f"Exit code {summary['exit_code']}: {summary['exit_meaning']}")
    click.get_current_context().exit(summary["exit_code"])


def _rows(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number, workload in enumerate(summary["workloads"]):
        for verdict in workload["sla"]:
            yield {"workload": number, "name": workload["name"], **verdict}
