"""Several runs, one after the other: `run --repeat`, and the alternating runs of `duel`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from osbench.common.errors import INTERRUPTED, OsbenchError
from osbench.common.escaping import escaped
from osbench.coordinator.cli.base import CommandSettings, console, echo
from osbench.coordinator.cli.one_run import Interrupts, Wanted, run_once
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.run_exports import RunExports
from osbench.coordinator.report.exit_code import worst
from osbench.coordinator.report.run_comparison import ShowSpread, spread_of_runs
from osbench.coordinator.run.plan import new_run_id
from osbench.coordinator.storage.run_directory import RunDirectory

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

    All runs get one tag in common. A run that is interrupted or fails to begin is the last. Raises
    OsbenchError if the first run cannot begin, PluginError before if no package compares runs.
    """
    show_spread = None if as_json else spread_of_runs()
    tag = f"repeat-{new_run_id()}"
    summaries, failure = _run_all(settings, wanted, progress, tag, times)
    codes = [summary["exit_code"] for summary in summaries]
    if failure is not None:
        codes.append(failure.exit_code)
        echo(escaped(f"Error: {failure}", breaks=True), err=True)
    elif len(summaries) < times:
        codes.append(INTERRUPTED)
    if as_json:
        document = {"format": FORMAT, "tag": tag, "exit_code": worst(codes), "runs": summaries}
        echo(json.dumps(document))
    elif show_spread is not None and summaries:
        _print_spread(show_spread, settings, tag, summaries)
    return worst(codes)


def _run_all(
    settings: CommandSettings, wanted: Wanted, progress: Progress, tag: str, times: int
) -> tuple[list[dict[str, Any]], OsbenchError | None]:
    """Run a task `times` times, or until a run fails to begin or is interrupted.

    Returns the summaries, and the failure to begin or None. Raises OsbenchError if the first run
    cannot begin.
    """
    summaries: list[dict[str, Any]] = []
    interrupts = Interrupts()
    with interrupts.noted():
        for number in range(1, times + 1):
            progress.say(f"run {number} of {times}")
            try:
                summaries.append(run_tagged(settings, wanted, progress, interrupts, tag))
            except OsbenchError as error:
                if not summaries:
                    raise
                return summaries, error
            if interrupts.count:
                break
    return summaries, None


def _print_spread(
    show_spread: ShowSpread,
    settings: CommandSettings,
    tag: str,
    summaries: Sequence[Mapping[str, Any]],
) -> None:
    """Print how much the runs differ, their tag, and a command that compares them later."""
    data_dir = str(settings.conf.data_dir)
    runs = [RunDirectory.find(data_dir, summary["run_id"]) for summary in summaries]
    show_spread(runs, console())
    echo(f"\nTag of these runs: {tag}")
    echo(f"Later: osbench-coord compare tag:{tag} --against tag:...")


def run_tagged(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    interrupts: Interrupts,
    *tags: str,
) -> dict[str, Any]:
    """Run a task once under a new id, with more tags, and archive it; return its summary.

    Raises OsbenchError if the run cannot begin or has no report.
    """
    run_id = new_run_id()
    options = replace(wanted.run_options, run_id=run_id, tags=(*wanted.run_options.tags, *tags))
    directory = RunDirectory.of(settings.conf.data_dir, run_id)
    exports = RunExports((), directory, progress.say, archive=wanted.archive)
    with exports.around():
        summary = run_once(settings, replace(wanted, run_options=options), progress, interrupts)
    return exports.write(summary)
