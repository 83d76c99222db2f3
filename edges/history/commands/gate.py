"""The command `gate`: compares a commit of a service with its parent commit, under load."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import click

from osbench.common.errors import INTERRUPTED, UsageError
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    DurationType,
    echo,
    with_settings,
    write_file,
)
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option, option_set
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.exit_code import LIMITED
from osbench.coordinator.task.taskfile.loading import TaskTemplate
from osbench.edges.history.commands.alternating_runs import AlternatingRuns, PairOptions
from osbench.edges.history.commands.comparison_options import ComparisonOptions, exit_code, show
from osbench.edges.history.commands.served_trees import (
    Serving,
    changed_files,
    find_commit,
    running_services,
)
from osbench.edges.history.comparison.comparison_json import comparison_json
from osbench.edges.history.comparison.comparison_markdown import comparison_markdown
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.comparison_result import ComparisonResult

#: Exit code: there is no verdict, because the load was not the one requested.
#: Files of the output folder: verdicts, and logs of the services of parent and change.
VERDICTS = ("verdict.md", "verdict.json", "verdict.html")
LOGS = ("parent.log", "change.log")
#: Argument of the task's template: the URL of the service that is under load.
URL = "url"


@dataclass(frozen=True, kw_only=True)
class GateOptions(PairOptions):
    """Options for `gate`: the service, its two commits, and the runs."""

    SECTION = "Change and service"

    serve: str | None = option(
        "--serve",
        required=True,
        metavar="COMMAND",
        help="Starts the service in its source tree, at 127.0.0.1 on the port $PORT.",
    )
    setup: str = option(
        "--setup",
        default="",
        metavar="COMMAND",
        help="Runs once in each source tree before, such as `make build`.",
    )
    parent: str = option(
        "--parent",
        default="HEAD^1",
        show_default=True,
        metavar="REVISION",
        help="The commit before the change.",
    )
    change: str = option(
        "--change",
        default="HEAD",
        show_default=True,
        metavar="REVISION",
        help="The commit that is judged.",
    )
    repository: Path = option(
        "--repository",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        metavar="DIR",
        help="Git repository of the service; default: this directory.",
    )
    ready_s: float = option(
        "--ready-within",
        type=DurationType(),
        default=60.0,
        metavar="DURATION",
        help="How long to wait for a service to accept connections; default: 60s.",
    )
    output: Path = option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("osbench-gate"),
        show_default=True,
        metavar="DIR",
        help="Gets verdict.md, verdict.json, verdict.html, and the logs of both services.",
    )


@click.command(cls=RuledCommand)
@click.argument("task")
@option_set(GateOptions, "gating")
@option_set(ComparisonOptions, "chosen")
@option_set(TaskOptions, "options")
@with_settings
def gate(
    settings: CommandSettings,
    task: str,
    gating: GateOptions,
    chosen: ComparisonOptions,
    options: TaskOptions,
) -> None:
    """Compare a change of a service with its parent commit.

    Both commits are checked out into temporary directories, set up and served at the same time.
    TASK runs against them in turn, as in `duel`, with the argument `url`. The change fails only if
    the difference is not chance. `verdict.md` is made to be a comment on the change.

    \b
    Examples:
      osbench-coord gate load.yaml --serve 'python3 app.py --port $PORT'
      osbench-coord gate load.yaml --setup 'make' --serve './shop -p $PORT' --parent origin/main

    \b
    Exit codes:
      0 the change is not worse, or there is no evidence of it
      1 something is worse with the change, or it misses criteria that its parent meets
      2 bad usage, a service does not start, or the runs cannot be compared
      4 no verdict: the load generator was the limit in too many pairs, as on a busy machine
      130 interrupted
    """
    assert gating.serve is not None, "click requires it"
    gating.output.mkdir(parents=True, exist_ok=True)
    # a gate that fails must not leave the verdict of an earlier one
    for name in (*VERDICTS, *LOGS):
        (gating.output / name).unlink(missing_ok=True)
    if not Path(task).is_file():
        raise UsageError(
            f"there is no task file {task}; name one, or write it with `osbench-coord init`"
        )
    names = TaskTemplate(task).names()
    if names is not None and URL not in names:
        raise UsageError(f"{task}: use {{{{ {URL} }}}} for the address of the service under load")
    commits = [find_commit(gating.repository, one) for one in (gating.parent, gating.change)]
    if changed_files(gating.repository):
        echo("Warning: changes that are not committed are not part of either side", err=True)
    progress = Progress(quiet=gating.quiet)
    for commit in commits:
        progress.say(f"setting up and serving {commit}")
    serving = Serving(setup=gating.setup, serve=gating.serve, ready_s=gating.ready_s)
    logs = [gating.output / name for name in LOGS]
    with running_services(gating.repository, commits, serving, logs) as urls:
        tasks = [
            gating.wanted(task, replace(options, task_args=(*options.task_args, f"{URL}={url}")))
            for url in urls
        ]
        runs = AlternatingRuns(settings, (tasks[0], tasks[1]), progress)
        runs.run(gating.pairs)
    if runs.only_second_fails and runs.interrupted:
        why = f"interrupted; so far only {commits[1]} misses the criteria of the task"
        _end(gating.output, INTERRUPTED, f"⚪ **no verdict**: {why}")
    if runs.only_second_fails:
        _end(gating.output, 1, f"❌ **worse**: only {commits[1]} misses the criteria of the task")
    if not chosen.anyway and (why := runs.lack_of_pairs(gating.pairs)):
        _end(gating.output, LIMITED, f"⚪ **no verdict**: {why}")
    result = runs.result(chosen, (str(commits[0]), str(commits[1])))
    # the two addresses differ, of course
    caveats = [one for one in result.caveats if not any(url in one.text for url in urls)]
    result = replace(result, caveats=tuple(caveats))
    _write(result, gating.output)
    show(result, chosen)
    sys.exit(INTERRUPTED if runs.interrupted else exit_code(result))


def _end(folder: Path, code: int, verdict: str) -> NoReturn:
    """Write a verdict that is not a comparison to `verdict.md`, print it, and exit with `code`."""
    write_file(folder / "verdict.md", f"{verdict}\n\nThe runs: `osbench-coord runs list`.\n")
    echo(verdict.partition("**: ")[2])
    sys.exit(code)


def _write(result: ComparisonResult, folder: Path) -> None:
    write_file(folder / "verdict.md", comparison_markdown(result))
    write_file(folder / "verdict.json", json.dumps(comparison_json(result), indent=1))
    write_file(folder / "verdict.html", compare_page(result))
