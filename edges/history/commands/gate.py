"""The command `gate`: compares a service before and after a change, under load.

The change is a commit, served together with its parent, or a command such as an upgrade.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, Protocol

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    echo,
    with_settings,
    write_file,
)
from osbench.coordinator.front.cli.one_run import Wanted
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option_set
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.exit_code import LIMITED
from osbench.coordinator.task.taskfile.loading import TaskTemplate
from osbench.edges.history.commands.alternating_runs import AlternatingRuns
from osbench.edges.history.commands.blocked_runs import BlockCommands, BlockedRuns, BlockSizes
from osbench.edges.history.commands.comparison_options import ComparisonOptions, exit_code, show
from osbench.edges.history.commands.gate_options import RULES, GateOptions, UpgradeOptions
from osbench.edges.history.commands.served_trees import (
    Serving,
    changed_files,
    find_commit,
    running_services,
)
from osbench.edges.history.commands.upgrade_commands import ServiceCommand
from osbench.edges.history.comparison.comparison_json import comparison_json
from osbench.edges.history.comparison.comparison_markdown import comparison_markdown
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.comparison_result import ComparisonResult

#: Files of the output folder: verdicts, and logs of the services or of the commands.
VERDICTS = ("verdict.md", "verdict.json", "verdict.html")
LOGS = ("parent.log", "change.log")
COMMAND_LOGS = ("before.log", "change.log", "after.log")
#: Argument of the task's template: the URL of the service that is under load.
URL = "url"
_HEAD = "HEAD"


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("task")
@option_set(GateOptions, "gating")
@option_set(UpgradeOptions, "upgrade")
@option_set(ComparisonOptions, "chosen")
@option_set(TaskOptions, "options")
@with_settings
def gate(
    settings: CommandSettings,
    task: str,
    gating: GateOptions,
    upgrade: UpgradeOptions,
    chosen: ComparisonOptions,
    options: TaskOptions,
) -> None:
    """Compare a service before and after a change, and fail if it is worse.

    With --serve, the change is a commit. It and its parent are checked out into temporary
    directories, set up and served at the same time. TASK runs against them in turn, as in `duel`,
    with the argument `url`.

    Without --serve, the service runs already, and --change is a command such as its upgrade. TASK
    runs in blocks before and after it. Blocks of one side show how much the service drifts anyway.

    The gate fails only if the difference is not chance. `verdict.md` is made to be a comment on the
    change.

    \b
    Examples:
      osbench-coord gate load.yaml --serve 'python3 app.py --port $PORT'
      osbench-coord gate load.yaml --setup 'make' --serve './shop -p $PORT' --parent origin/main
      osbench-coord gate tokens.yaml --deployment cloud --change ./upgrade-keystone.sh
      osbench-coord gate load.yaml --before ./restart.sh --change ./upgrade.sh --after ./restart.sh

    \b
    Exit codes:
      0 the change is not worse, or there is no evidence of it
      1 something is worse with the change, or it misses criteria that are met without it
      2 bad usage, a service does not start, a command fails, or the runs cannot be compared
      4 no verdict: the load generator was the limit in too many runs, as on a busy machine
      130 interrupted
    """
    gating.output.mkdir(parents=True, exist_ok=True)
    # a gate that fails must not leave the verdict of an earlier one
    for name in (*VERDICTS, *LOGS, *COMMAND_LOGS):
        (gating.output / name).unlink(missing_ok=True)
    if not Path(task).is_file():
        raise UsageError(
            f"there is no task file {task}; name one, or write it with `osbench-coord init`"
        )
    made = _Gate(
        settings=settings,
        task=task,
        gating=gating,
        chosen=chosen,
        options=options,
        progress=Progress(quiet=gating.quiet),
    )
    try:
        if gating.serve is not None:
            made.judge_commits(gating.serve)
        else:
            made.judge_command(upgrade)
    except OsbenchError as error:
        _write_text(gating.output, f"⚪ **no verdict**: {str(error).splitlines()[0]}")
        raise


@dataclass(frozen=True, kw_only=True)
class _Gate:
    """A gate as it was requested; each method ends the command with its exit code."""

    settings: CommandSettings
    #: Path of the task file.
    task: str
    gating: GateOptions
    chosen: ComparisonOptions
    options: TaskOptions
    progress: Progress

    def judge_commits(self, serve: str) -> NoReturn:
        """Serve a commit and its parent by the command `serve`, and compare them in turn."""
        gating = self.gating
        names = TaskTemplate(self.task).names()
        if names is not None and URL not in names:
            raise UsageError(
                f"{self.task}: use {{{{ {URL} }}}} for the address of the service under load"
            )
        revisions = (gating.parent, gating.change or _HEAD)
        commits = [find_commit(gating.repository, revision) for revision in revisions]
        if changed_files(gating.repository):
            echo("Warning: changes that are not committed are not part of either side", err=True)
        for commit in commits:
            self.progress.say(f"setting up and serving {commit}")
        serving = Serving(setup=gating.setup, serve=serve, ready_s=gating.ready_s)
        logs = [gating.output / name for name in LOGS]
        with running_services(gating.repository, commits, serving, logs) as urls:
            first, second = (self._wanted(f"{URL}={url}") for url in urls)
            runs = AlternatingRuns(self.settings, (first, second), self.progress)
            runs.run(gating.pairs)
        worse = (
            f"only {commits[1]} misses the criteria of the task" if runs.only_second_fails else ""
        )
        self._end_early(worse, "" if self.chosen.anyway else runs.lack_of_pairs(gating.pairs), runs)
        result = runs.result(self.chosen, (str(commits[0]), str(commits[1])))
        # the two addresses differ, of course
        caveats = [one for one in result.caveats if not any(url in one.text for url in urls)]
        self._end_with(replace(result, caveats=tuple(caveats)), runs)

    def judge_command(self, upgrade: UpgradeOptions) -> NoReturn:
        """Compare the service before and after the command `--change`."""
        if not (self.gating.change or "").strip():
            raise UsageError("--change is empty: give the command that changes the service")
        before, change, after = (
            ServiceCommand(
                option=name,
                command=command,
                log=self.gating.output / log,
                within_s=upgrade.within_s,
                spared=name == "--change",
            )
            for name, command, log in (
                ("--before", upgrade.before, COMMAND_LOGS[0]),
                ("--change", self.gating.change or "", COMMAND_LOGS[1]),
                ("--after", upgrade.after, COMMAND_LOGS[2]),
            )
        )
        runs = BlockedRuns(
            self.settings,
            self._wanted(),
            self.progress,
            BlockCommands(before=before, change=change, after=after),
            BlockSizes(blocks=upgrade.blocks, runs=upgrade.runs),
            anyway=self.chosen.anyway,
        )
        runs.run()
        self._end_early(runs.failing_after, runs.lack_of_blocks, runs)
        self._end_with(runs.result(self.chosen), runs)

    def _wanted(self, *arguments: str) -> Wanted:
        options = replace(self.options, task_args=(*self.options.task_args, *arguments))
        return self.gating.wanted(self.task, options)

    def _end_early(self, worse: str, lack: str, runs: _Interruptible) -> None:
        """End the command if the change fails (`worse`), or the runs do not allow a verdict."""
        folder = self.gating.output
        if worse and runs.interrupted:
            _end(folder, INTERRUPTED, f"⚪ **no verdict**: interrupted; so far {worse}")
        if worse:
            _end(folder, 1, f"❌ **worse**: {worse}")
        if lack and not runs.interrupted:
            _end(folder, LIMITED, f"⚪ **no verdict**: {lack}")

    def _end_with(self, result: ComparisonResult, runs: _Interruptible) -> NoReturn:
        """Write and print a comparison, and exit with its code."""
        _write(result, self.gating.output)
        show(result, self.chosen)
        sys.exit(INTERRUPTED if runs.interrupted else exit_code(result))


class _Interruptible(Protocol):
    @property
    def interrupted(self) -> bool: ...


def _end(folder: Path, code: int, verdict: str) -> NoReturn:
    """Write a verdict that is not a comparison to `verdict.md`, print it, and exit with `code`."""
    _write_text(folder, verdict)
    echo(verdict.partition("**: ")[2])
    sys.exit(code)


def _write_text(folder: Path, verdict: str) -> None:
    write_file(folder / "verdict.md", f"{verdict}\n\nThe runs: `osbench-coord runs list`.\n")


def _write(result: ComparisonResult, folder: Path) -> None:
    write_file(folder / "verdict.md", comparison_markdown(result))
    write_file(folder / "verdict.json", json.dumps(comparison_json(result), indent=1))
    write_file(folder / "verdict.html", compare_page(result))
