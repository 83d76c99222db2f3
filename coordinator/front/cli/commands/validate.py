"""The command `validate`: checks task files and reports their problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click

from osbench.common.deployment.record import Deployment
from osbench.common.errors import Problem, TaskError
from osbench.common.plugin.cloud_platform import cloud_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import OptionSet, flag, option_set
from osbench.coordinator.front.cli.options.shared_options import deployment_name, json_flag
from osbench.coordinator.front.cli.options.task_options import (
    TaskOptions,
    read_plugins,
    read_with,
    warn_of_unused,
)
from osbench.coordinator.task.taskfile import read_args, source_validation
from osbench.coordinator.task.taskfile.loading import TaskTemplate
from osbench.coordinator.task.taskfile.semantics import notes

#: Exit code if a file has problems.
_BAD = 2


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """The result of a check of one task file, made by `examine`."""

    #: Path of the file, or "-".
    source: str
    #: None if the task itself has problems. May be set together with problems found in the cloud.
    task: Task | None = None
    problems: tuple[Problem, ...] = ()
    #: Settings in the file that have no effect.
    notes: tuple[Problem, ...] = ()
    #: Validators of Rally that were not run, because they need the deployment or its cloud.
    unasked: tuple[str, ...] = ()


def examine(
    source: str,
    plugins: Plugins,
    read: Callable[[str], Task],
    deployment: Deployment | None,
    silenced: Collection[str] = (),
) -> ValidationResult:
    """Read and check the task file `source`; with a deployment, also against its cloud.

    Problems of the task are returned, not raised. `read` returns the checked task of a path, or
    raises TaskError. `silenced`: names of notes to leave out. Raises other errors of `read`, such
    as PluginError if plug-ins cannot be read.
    """
    try:
        task = read(source)
    except TaskError as error:
        return ValidationResult(source=source, problems=tuple(error.problems))
    asks, problems = deployment is not None, list[Problem]()
    if deployment is not None:
        problems = source_validation.check(task, plugins, deployment)
        cloud = cloud_of(deployment)
        if cloud is not None and not problems:
            problems = cloud.cloud_problems(task, plugins, deployment)
    return ValidationResult(
        source=source,
        task=task,
        problems=tuple(problems),
        notes=tuple(notes(task, plugins, silenced)),
        unasked=() if asks else tuple(source_validation.unasked_checks(task, plugins)),
    )


def as_text(verdict: ValidationResult) -> str:
    """Return the result as text: OK with counts and notes, or every problem."""
    if verdict.problems or verdict.task is None:
        return str(TaskError(verdict.source, list(verdict.problems)))
    subtasks = _count(len(verdict.task.subtasks), "subtask")
    workloads = _count(len(verdict.task.workloads), "workload")
    lines = [f"{verdict.source}: OK, {subtasks}, {workloads}"]
    lines += [f"  note: {note}" for note in verdict.notes]
    if verdict.unasked:
        lines.append(f"  not checked without a cloud: {', '.join(verdict.unasked)}")
    return "\n".join(lines)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def as_object(verdict: ValidationResult) -> dict[str, Any]:
    """Return the result as a JSON object; counts are null if the task itself has problems."""
    task = verdict.task
    return {
        "file": verdict.source,
        "ok": not verdict.problems,
        "subtasks": len(task.subtasks) if task else None,
        "workloads": len(task.workloads) if task else None,
        "problems": [_problem_json(problem) for problem in verdict.problems],
        "notes": [_problem_json(note) for note in verdict.notes],
        "not_checked": list(verdict.unasked),
    }


def _problem_json(problem: Problem) -> dict[str, str]:
    return {"place": problem.place, "message": problem.message}


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(OptionSet):
    """Options for a check of files: the deployment to check against, and the output."""

    SECTION = "Checks"

    deployment: str | None = deployment_name()
    offline: bool = flag(
        "--offline", help="Ask no cloud: skip Rally's validators that need it, and credentials."
    )
    as_json: bool = json_flag("an object for each file, one a line")


@click.command(cls=RuledCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option_set(ValidateOptions, "how")
@option_set(TaskOptions, "options")
@with_settings
def validate(
    settings: CommandSettings, files: tuple[str, ...], how: ValidateOptions, options: TaskOptions
) -> None:
    """Check task files without running them; `-` is standard input.

    Every problem of a file is reported with its place and the value found. The exit code is 2 if
    any file has problems. Plug-ins of Rally are checked by Rally's own validators; validators that
    query the cloud need a deployment and, unless it has users, create a temporary one. With a
    deployment it is checked, too, whether its credentials suffice for the task, and whether its
    cloud has the services, the images and flavors, and quotas for the concurrency.

    \b
    Examples:
      osbench-coord validate task.yaml
      osbench-coord validate --task-args times=10,image=cirros nightly/*.yaml
      osbench-coord validate --offline --json rally-jobs/*.yaml
    """
    record = None if how.offline else settings.deployment(how.deployment)
    plugins = read_plugins(settings.conf, options)
    args = read_args(options.task_args, options.task_args_file)

    templates: list[frozenset[str] | None] = []

    def read(source: str) -> Task:
        template = TaskTemplate(source)
        templates.append(template.names())
        return read_with(template, plugins, args, options)

    exit_code = 0
    for source in files:
        verdict = examine(source, plugins, read, record, settings.conf.benchmark.silenced_notes)
        if verdict.problems:
            exit_code = _BAD
        echo(json.dumps(as_object(verdict)) if how.as_json else as_text(verdict))
    warn_of_unused(args, templates)
    click.get_current_context().exit(exit_code)
