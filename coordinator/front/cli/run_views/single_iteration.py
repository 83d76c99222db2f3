"""`run --once`: one iteration of each workload, with its requests, output and log."""

from __future__ import annotations

import itertools
import json
import signal
import sys
from dataclasses import replace
from typing import Self

from rich.console import Console
from rich.text import Text

from osbench.common.errors import OsbenchError
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import CommandSettings, console, echo
from osbench.coordinator.front.cli.one_run import Wanted, run_task
from osbench.coordinator.front.cli.piped_console import PipedConsole
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.run_exports import RunExports
from osbench.coordinator.front.cli.run_views.iteration_view import print_iteration, print_traceback
from osbench.coordinator.report.iteration_record import iteration_records
from osbench.coordinator.report.kept_traces import kept_traces
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.accounting.block_contents import counted_contents
from osbench.coordinator.results.storage.progress import Snapshot
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.worker_log import WorkerLog

_ITERATION = 1
#: Exit code of a run whose SLA failed.
_FAILED = 1
_NOT_STARTED = "a virtual user failed to start"


class IterationProgress(Progress):
    """Prints output and logs of the workers of `run --once` as they come, to stdout.

    It replaces the figures of the load. Messages on the run go to stderr.
    """

    def __init__(self, directory: RunDirectory, *, silent: bool) -> None:
        """`silent`: print only messages on the run, no output and logs."""
        super().__init__(quiet=False)
        self._directory = directory
        self._log = WorkerLog(directory)
        self._silent = silent
        # while a run goes on sys.stdout is another: what plug-ins print does not belong there
        self._terminal = PipedConsole(file=sys.stdout)
        #: The virtual user could not start: it would be tried again without end.
        self.not_started = False

    def __enter__(self) -> Self:
        # no table: it would stand between lines of the log
        return self

    def __call__(self, snapshot: Snapshot) -> None:
        """Print new entries of the log; interrupt the run if its virtual user cannot start.

        Interrupts once, by SIGINT to this process. The snapshot itself is not shown.
        """
        self._note(snapshot)
        self.print_log()
        if snapshot.start_failures and not self.not_started:
            self.not_started = True
            self.say("the virtual user cannot start")
            # as Ctrl-C would, in this process
            signal.raise_signal(signal.SIGINT)

    def print_log(self) -> None:
        """Print the log entries since the last call; does nothing if `silent`."""
        if self._silent:
            return
        for entry in self._log.fresh():
            text = escaped(entry.text.rstrip(), breaks=True).replace("\n", f"\n{'':10}")
            line = Text(f"{plain(entry.source):<9} {text}")
            self._terminal.print(line, markup=False, highlight=False, soft_wrap=True)


def run_single(
    settings: CommandSettings, wanted: Wanted, exports: RunExports, *, as_json: bool
) -> int:
    """Run one iteration of each workload and print all about it; return the exit code.

    Writes the exports, too. `as_json`: prints one JSON object instead of text. The code is 1 if a
    virtual user could not start. Raises OsbenchError if the run cannot begin or has no report.
    """
    directory = RunDirectory.of(settings.conf.data_dir, wanted.run_options.run_id)
    progress = IterationProgress(directory, silent=as_json)
    try:
        with exports.around():
            report = run_task(settings, wanted, progress)
    finally:
        # also what explains why a run could not begin
        progress.print_log()
    report = exports.write(report)
    if progress.not_started:
        report = replace(report, exit_code=_FAILED, exit_meaning=_NOT_STARTED)
    records = iteration_records(directory, _ITERATION, report)
    if as_json:
        ending = {
            "run_id": report.run_id,
            "exit_code": report.exit_code,
            "exit_meaning": report.exit_meaning,
            "notes": report.notes,
        }
        echo(json.dumps({**ending, "iterations": records}, default=str))
        return report.code
    echo("")
    terminal = console()
    for one in records:
        # printed already, as it came
        print_iteration({**one, "log": []}, terminal)
        if one["trace_id"]:
            _print_trace(settings, report.run_id, one["trace_id"], terminal)
    if progress.not_started:
        _print_start(directory, terminal)
    _print_end(report, terminal, started=not progress.not_started)
    return report.code


def _print_end(report: Report, terminal: Console, *, started: bool) -> None:
    """Print notes and exit code of a run. `started`: the virtual user could start."""
    for note in report.notes:
        terminal.print(Text(f"Note: {plain(note, 1000)}"), highlight=False)
    code = report.exit_code
    style = "bold green" if code == 0 else "bold red"
    # the SLA of a single iteration is that it ends well
    failed = code == _FAILED and started
    meaning = "an iteration failed" if failed else report.exit_meaning
    terminal.print(Text(f"Exit code {code}: {meaning}", style=style))


def _print_start(directory: RunDirectory, terminal: Console) -> None:
    blocks = filter(None, map(counted_contents, directory.blocks()))
    failures = (failure for block in blocks for failure in block.failures)
    for one in itertools.islice(failures, 1):
        said = f"{plain(one.etype)} in on_start: {plain(one.message, 1000)}"
        terminal.print(Text(said, style="red"))
        print_traceback(one.traceback, terminal)
        terminal.print()


def _print_trace(settings: CommandSettings, run_id: str, trace_id: str, terminal: Console) -> None:
    traces = kept_traces()
    if traces is None:
        return
    try:
        traces.print_spans(settings, run_id, trace_id, terminal)
    except OsbenchError as error:
        terminal.print(Text(f"   no spans: {plain(str(error), 1000)}"), highlight=False)
    terminal.print()
