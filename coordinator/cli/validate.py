"""The command `validate`: are these task files right, and if not, what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from oslo_config import cfg

from osbench.common.errors import OsbenchError, Problem, TaskError
from osbench.common.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.cli.common import Settings, with_settings
from osbench.coordinator.cli.taskargs import TaskOptions, read_plugins, task_options
from osbench.coordinator.taskfile import load, read_args
from osbench.coordinator.taskfile.semantics import notes

#: Exit code where a file is bad.
_BAD = 2


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is to be said of one task file."""

    #: Path of the file, or "-".
    source: str
    #: None where there are problems.
    task: Task | None = None
    problems: tuple[Problem, ...] = ()
    #: What the file says without effect.
    notes: tuple[Problem, ...] = ()


def examine(
    source: str, args: Mapping[str, Any], plugins: Plugins, overrides: Sequence[str] = ()
) -> Verdict:
    """Read and check one task file. Raises PluginError where plug-ins cannot be read."""
    try:
        task = load(source, args=args, plugins=plugins, overrides=overrides)
    except TaskError as error:
        return Verdict(source=source, problems=tuple(error.problems))
    return Verdict(source=source, task=task, notes=tuple(notes(task, plugins)))


def as_text(verdict: Verdict) -> str:
    """Lines for a reader: OK with what the file holds, or every problem."""
    if verdict.task is None:
        return str(TaskError(verdict.source, list(verdict.problems)))
    subtasks = _count(len(verdict.task.subtasks), "subtask")
    workloads = _count(len(verdict.task.workloads), "workload")
    lines = [f"{verdict.source}: OK, {subtasks}, {workloads}"]
    return "\n".join(lines + [f"  note: {note}" for note in verdict.notes])


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def as_object(verdict: Verdict) -> dict[str, Any]:
    """The same for a program."""
    task = verdict.task
    return {
        "file": verdict.source,
        "valid": task is not None,
        "subtasks": len(task.subtasks) if task else None,
        "workloads": len(task.workloads) if task else None,
        "problems": [_placed(problem) for problem in verdict.problems],
        "notes": [_placed(note) for note in verdict.notes],
    }


def _placed(problem: Problem) -> dict[str, str]:
    return {"place": problem.place, "message": problem.message}


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@task_options
@with_settings
def validate(
    settings: Settings, files: tuple[str, ...], as_json: bool, options: TaskOptions
) -> None:
    """Check task files without running them; `-` is standard input.

    Every problem of a file is told with its place and the value it got. The exit code is 2
    where any file is bad.

    \b
    Examples:
      osbench-coord validate task.yaml
      osbench-coord validate --task-args times=10,image=cirros nightly/*.yaml
    """
    try:
        verdicts = examine_all(files, settings.conf, options)
    except OsbenchError as error:
        if not as_json:
            raise
        told = {"exit_code": error.exit_code, "error": str(error), "files": []}
        click.echo(json.dumps(told, indent=2))
        click.get_current_context().exit(error.exit_code)
    exit_code = _BAD if any(verdict.problems for verdict in verdicts) else 0
    if as_json:
        objects = [as_object(verdict) for verdict in verdicts]
        click.echo(json.dumps({"exit_code": exit_code, "files": objects}, indent=2))
    else:
        for verdict in verdicts:
            click.echo(as_text(verdict))
    click.get_current_context().exit(exit_code)


def examine_all(files: Sequence[str], conf: cfg.ConfigOpts, options: TaskOptions) -> list[Verdict]:
    """What is to be said of each file. Raises UsageError and PluginError."""
    plugins = read_plugins(conf, options)
    args = read_args(options.task_args, options.task_args_file)
    return [examine(source, args, plugins, options.overrides) for source in files]
