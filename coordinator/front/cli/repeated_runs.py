"""Several runs, one after the other: `run --repeat`, and the alternating runs of `duel`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from osbench.common.errors import INTERRUPTED, OsbenchError
from osbench.common.text.escaping import escaped
from osbench.coordinator.front.cli.base import CommandSettings, console, echo
from osbench.coordinator.front.cli.one_run import Interrupts, Wanted, run_task
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.run_exports import RunExports
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.report.exit_code import worst
from osbench.coordinator.report.run_comparison import ShowSpread, spread_of_runs
from osbench.coordinator.results.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from osbench.coordinator.report.model.model import Report

#: Version of the JSON object that `run --repeat` prints.
FORMAT = 1


def run_repeatedly(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    *,
    times: int,
    as_json: bool,
) -> int:
    """Run a task `times` times and print how much the runs differ; return the worst exit code.

    All runs get one tag in common. A run that is interrupted or has no report is the last.
    `as_json`: prints the reports as JSON instead. Raises OsbenchError if the first run has no
    report, and without `as_json` PluginError before any run if no package compares runs.
    """
    show_spread = None if as_json else spread_of_runs()
    tag = f"repeat-{new_run_id()}"
    reports, failure = _run_all(settings, wanted, progress, tag, times)
    codes = [report.code for report in reports]
    if failure is not None:
        codes.append(failure.exit_code)
        echo(escaped(f"Error: {failure}", breaks=True), err=True)
    elif len(reports) < times:
        codes.append(INTERRUPTED)
    if as_json:
        runs = [report.to_json() for report in reports]
        echo(json.dumps({"format": FORMAT, "tag": tag, "exit_code": worst(codes), "runs": runs}))
    elif show_spread is not None and reports:
        _print_spread(show_spread, settings, tag, reports)
    return worst(codes)


def _run_all(
    settings: CommandSettings, wanted: Wanted, progress: Progress, tag: str, times: int
) -> tuple[list[Report], OsbenchError | None]:
    """Run a task `times` times, or until a run is interrupted or has no report.

    Returns the reports, and the error of that last run or None. Raises OsbenchError if the first
    run has no report.
    """
    reports: list[Report] = []
    interrupts = Interrupts()
    with interrupts.noted():
        for number in range(1, times + 1):
            progress.say(f"run {number} of {times}")
            try:
                reports.append(run_tagged(settings, wanted, progress, interrupts, tag))
            except OsbenchError as error:
                if not reports:
                    raise
                return reports, error
            if interrupts.count:
                break
    return reports, None


def _print_spread(
    show_spread: ShowSpread,
    settings: CommandSettings,
    tag: str,
    reports: Sequence[Report],
) -> None:
    data_dir = str(settings.conf.data_dir)
    runs = [RunDirectory.find(data_dir, report.run_id) for report in reports]
    show_spread(runs, console())
    echo(f"\nTag of these runs: {tag}")
    echo(f"Later: osbench-coord compare tag:{tag} --against tag:...")


def run_tagged(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    interrupts: Interrupts,
    *tags: str,
) -> Report:
    """Run a task once under a new id, with more tags, and archive it; return its report.

    Raises OsbenchError if the run cannot begin or has no report.
    """
    run_id = new_run_id()
    options = replace(wanted.run_options, run_id=run_id, tags=(*wanted.run_options.tags, *tags))
    directory = RunDirectory.of(settings.conf.data_dir, run_id)
    exports = RunExports((), directory, progress.say, archive=wanted.archive)
    with exports.around():
        report = run_task(settings, replace(wanted, run_options=options), progress, interrupts)
    return exports.write(report)
