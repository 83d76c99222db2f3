"""The commands `results`, `logs`, `sla` and `import`: measurements and verdicts, also Rally's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    console,
    echo,
    echo_json,
    echo_table,
    with_settings,
)
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    options,
)
from osbench.coordinator.front.cli.options.shared_options import (
    damaged_flag,
    details_flag,
    json_flag,
)
from osbench.coordinator.front.cli.run_views.damaged_runs import found_run
from osbench.coordinator.front.cli.run_views.iteration_view import (
    SUMMED,
    show_charts,
    show_errors,
    show_one,
    show_summed_charts,
)
from osbench.coordinator.front.cli.run_views.log_view import show_log
from osbench.coordinator.plugins.exporters import csv
from osbench.coordinator.report.error_json import to_error_json
from osbench.coordinator.report.foreign_results import foreign_results
from osbench.coordinator.report.iterations import iterations
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.text import render
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline, summary_of
from osbench.coordinator.text_table import TextTable, names, texts

#: Each is one output of `results`.
_PARTS = ("--outputs", "--iteration", "--errors", "--details")


@dataclass(frozen=True, kw_only=True)
class ResultsOptions(OptionSet):
    """Options for `results`: the part of a run to print, and its format."""

    as_json: bool = json_flag()
    as_csv: bool = flag("--csv", help="Print every iteration as a line of CSV.")
    as_rally: bool = flag("--rally-json", help="Print the run in the format of Rally's report.")
    outputs: int | None = option(
        "--outputs",
        is_flag=False,
        flag_value=str(SUMMED),
        type=click.IntRange(min=SUMMED),
        metavar="[ITERATION]",
        help="Print the charts of all iterations, aggregated, or of one ITERATION.",
    )
    iteration: int | None = option(
        "--iteration",
        type=click.IntRange(min=1),
        metavar="N",
        help="Print one iteration: its error, traceback, actions, requests and charts.",
    )
    errors: bool = flag("--errors", help="Print every error with its traceback.")
    details: bool = details_flag()
    damaged: bool = damaged_flag()


RULES = (
    Alternatives(
        of=("--json", "--csv", "--rally-json"), single="each is a format of the whole output"
    ),
    Alternatives(of=_PARTS, single="each is a separate output"),
    Rule(
        option="--csv",
        why="prints every iteration as a line",
        excludes=_PARTS,
        remedy="--json is allowed",
    ),
    Rule(
        option="--rally-json",
        why="prints the whole run",
        excludes=_PARTS,
        remedy="--json is allowed",
    ),
)


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("run", default="last")
@option_set(ResultsOptions, "wanted")
@with_settings
def results(settings: CommandSettings, run: str, wanted: ResultsOptions) -> None:
    """Print the results of a run; `report` writes them to files.

    RUN is an id, the beginning of one, or "last", which is the default. --iteration and --errors
    also show a running or interrupted run. Damaged run files are refused (exit code 3); use
    --damaged.

    \b
    Examples:
      osbench-coord results
      osbench-coord results --details
      osbench-coord results --errors
      osbench-coord results --iteration 17
      osbench-coord results 20260401 --json | jq .workloads[0].latency.service.ok.p99
      osbench-coord results last --csv > iterations.csv
      osbench-coord results last --rally-json > rally.json
      osbench-coord results last --outputs 17
    """
    try:
        _print(found_run(settings, run, damaged=wanted.damaged), wanted)
    except OsbenchError as error:
        if not wanted.as_json:
            raise
        echo_json(to_error_json(error), indent=1)
        click.get_current_context().exit(error.exit_code)


@click.command()
@click.argument("run", default="last")
@options(
    worker=option(
        "--worker", metavar="WORKER", help="Only of this worker: its label, host or host:pid."
    ),
    follow=flag("--follow", "-f", help="Go on until the run ends."),
    as_json=json_flag("a line for each entry"),
    damaged=damaged_flag(),
)
@with_settings
def logs(
    settings: CommandSettings,
    run: str,
    worker: str | None,
    follow: bool,
    as_json: bool,
    damaged: bool,
) -> None:
    """Print the output and logs of the workers of a run.

    Each entry has its time, worker, workload and iteration, and stdout, stderr or the level
    of logging ([DEFAULT] log_level says from which on). Secrets are masked. The amount is limited;
    the rest is counted. RUN is an id, the beginning of one, or "last", which is the
    default.

    \b
    Examples:
      osbench-coord logs
      osbench-coord logs 20260401 --worker rack-7
      osbench-coord logs --follow
    """
    directory = found_run(settings, run, damaged=damaged)
    show_log(directory, worker=worker, follow=follow, as_json=as_json)


def _print(directory: RunDirectory, wanted: ResultsOptions) -> None:
    if wanted.outputs is not None:
        _print_charts(directory, wanted.outputs, as_json=wanted.as_json)
    elif wanted.iteration is not None:
        show_one(directory, wanted.iteration, as_json=wanted.as_json)
    elif wanted.errors:
        show_errors(_report_so_far(directory), as_json=wanted.as_json)
    elif wanted.as_csv:
        summary = summary_of(directory)
        report = None if summary is None else Report.from_json(summary)
        csv.write(iterations(directory, report), sys.stdout, directory.damage)
    elif wanted.as_rally:
        foreign_results("rally").write(directory, read_report(directory), sys.stdout)
    elif wanted.as_json:
        echo_json(read_summary(directory), indent=1)
    else:
        render(read_report(directory), console(), details=wanted.details)


def _report_so_far(directory: RunDirectory) -> Report:
    """Return the report of a run, or of its last checkpoint. Raises UsageError without both."""
    timeline = None if summary_of(directory) is not None else read_timeline(directory)
    return Report.from_json(timeline["summary"]) if timeline else read_report(directory)


def _print_charts(directory: RunDirectory, iteration: int, *, as_json: bool) -> None:
    if iteration == SUMMED:
        show_summed_charts(read_report(directory), as_json=as_json)
    else:
        show_charts(directory, iteration, as_json=as_json)


def read_report(directory: RunDirectory) -> Report:
    """Return the report of a finished run. Raises UsageError if the run has no report."""
    return Report.from_json(read_summary(directory))


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """Return the summary of a finished run, as a JSON object.

    Raises UsageError if there is none, with the reason and a way to see the results so far.
    """
    summary = summary_of(directory)
    if summary is None:
        raise UsageError(_unfinished_message(directory))
    return summary


def _unfinished_message(directory: RunDirectory) -> str:
    name = directory.path.name
    if directory.has_coordinator():
        return f"run {name} is still running; `osbench-coord status {name}` shows its progress"
    message = f"run {name} ended without a report: {failure.reason(directory)}"
    if any(directory.blocks()):
        message += f"; `osbench-coord results {name} --csv` prints the iterations it reported"
    return message


@click.command()
@click.argument("run", default="last")
@options(as_json=json_flag("a list, an object for each criterion"), damaged=damaged_flag())
@with_settings
def sla(settings: CommandSettings, run: str, as_json: bool, damaged: bool) -> None:
    """Print the verdicts of a run, and exit with its exit code.

    That is 1 if a criterion failed, and another code if the load was not the requested one; see
    `run --help`. RUN is an id, the beginning of one, or "last", which is the default.

    \b
    Examples:
      osbench-coord sla
      osbench-coord sla 20260401 --json
    """
    report = read_report(found_run(settings, run, damaged=damaged))
    rows = list(_verdicts(report))
    if as_json:
        echo_json(rows)
    else:
        table = TextTable(texts("workload"), names("criterion", "verdict"), texts("detail"))
        for row in rows:
            verdict = "passed" if row["success"] else "FAILED"
            place = f"{row['workload']}. {plain(row['name'])}"
            table.add_row(place, plain(row["criterion"]), verdict, plain(row["detail"], 200))
        echo_table(table)
        echo(f"Exit code {report.exit_code}: {report.exit_meaning}")
    click.get_current_context().exit(report.exit_code or 0)


def _verdicts(report: Report) -> Iterator[dict[str, Any]]:
    for number, workload in enumerate(report.workloads):
        for verdict in workload.sla:
            yield {"workload": number, "name": workload.name, **json_codec.to_json(verdict)}


@click.command("import")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@with_settings
def import_(settings: CommandSettings, files: tuple[Path, ...]) -> None:
    """Make runs of results that Rally has written.

    FILE is the output of `rally task report --json`; the ids of the runs are printed. Such a run
    can be shown, exported and compared like others. Hooks are not imported. Rally does not say when
    iterations were due: each counts as due when it started.

    \b
    Examples:
      osbench-coord import rally.json
      osbench-coord compare 20260401-101500-ab12 last
    """
    conf, form = settings.conf, foreign_results("rally")
    for path in files:
        for run in form.read(path, conf.data_dir, conf.benchmark.lag_limit_s):
            echo(run)
