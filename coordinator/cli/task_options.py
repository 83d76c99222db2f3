"""Options that select task and plug-ins, for every command that reads a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from oslo_config import cfg

from osbench.common.escaping import escaped
from osbench.common.plugin.plugin_names import NATIVE, SOURCES
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.cli.base import echo, warn_of_plugins
from osbench.coordinator.taskfile import checked, read_args
from osbench.coordinator.taskfile.args import TaskArguments
from osbench.coordinator.taskfile.loading import TaskTemplate
from osbench.coordinator.taskfile.selection import Selection


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """What `task_options` collects from the command line."""

    #: Texts of `--task-args`, in order.
    task_args: tuple[str, ...] = ()
    #: Paths of `--task-args-file`, in order.
    task_args_file: tuple[str, ...] = ()
    #: Texts of `--set`, in order.
    overrides: tuple[str, ...] = ()
    #: Paths of `--plugin-path`, in addition to the configured ones.
    plugin_path: tuple[str, ...] = ()
    #: Value of `--prefer`.
    prefer: str = NATIVE
    #: Values of `--subtask` and `--workload`.
    selection: Selection = field(default_factory=Selection)


#: Adds `--plugin-path`.
plugin_path_option = click.option(
    "--plugin-path",
    multiple=True,
    metavar="PATH",
    help="Python file, or directory of them, to load plug-ins from: osbench's or Rally's.",
)

#: Adds `--prefer`.
prefer_option = click.option(
    "--prefer",
    type=click.Choice(SOURCES),
    default=NATIVE,
    show_default=True,
    help="Which plug-in to use for a name that both osbench and Rally have.",
)


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command: it gets its options as one `TaskOptions` named `options`."""

    @click.option(
        "--task-args",
        multiple=True,
        metavar="ARGS",
        help="Arguments of the task's template: a YAML or JSON object, or k=v,k2=v2.",
    )
    @click.option(
        "--task-args-file",
        multiple=True,
        metavar="FILE",
        help="YAML or JSON file of template arguments; overridden by later files and --task-args.",
    )
    @click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SUBTASK.WORKLOAD.KEY=VALUE",
        help="Set a value of the task, in YAML, as in 0.0.runner.times=5; may be repeated.",
    )
    @click.option(
        "--subtask",
        multiple=True,
        metavar="TITLE|N",
        help="Run only this subtask, by title or position from 0; may be repeated.",
    )
    @click.option(
        "--workload",
        multiple=True,
        metavar="NAME|SCENARIO|N",
        help="Run only this workload, by name, scenario or position from 0; may be repeated.",
    )
    @plugin_path_option
    @prefer_option
    @functools.wraps(command)
    def collected(
        *args: Any,
        task_args: tuple[str, ...],
        task_args_file: tuple[str, ...],
        overrides: tuple[str, ...],
        subtask: tuple[str, ...],
        workload: tuple[str, ...],
        plugin_path: tuple[str, ...],
        prefer: str,
        **rest: Any,
    ) -> Any:
        options = TaskOptions(
            task_args=task_args,
            task_args_file=task_args_file,
            overrides=overrides,
            plugin_path=plugin_path,
            prefer=prefer,
            selection=Selection(subtasks=subtask, workloads=workload),
        )
        return command(*args, options=options, **rest)

    return collected


def read_plugins(conf: cfg.ConfigOpts, options: TaskOptions) -> Plugins:
    """Plug-ins of the configured paths and of the command line. Raises PluginError."""
    paths = (*conf.coordinator.plugin_path, *options.plugin_path)
    return warn_of_plugins(Plugins(paths, options.prefer), faults=False)


def read_task(source: str, conf: cfg.ConfigOpts, options: TaskOptions) -> tuple[Task, Plugins]:
    """The checked task of a path, or of standard input (`-`), and the plug-ins it runs with.

    Raises UsageError for bad arguments, PluginError for bad plug-ins, TaskError for the rest.
    """
    plugins = read_plugins(conf, options)
    args = read_args(options.task_args, options.task_args_file)
    template = TaskTemplate(source)
    warn_of_unused(args, [template.names()])
    return read_with(template, plugins, args, options), plugins


def warn_of_unused(args: TaskArguments, templates: Sequence[frozenset[str] | None]) -> None:
    """Warn of arguments of files that no template has. Raises UsageError for those of options."""
    for note in args.refuse_unused(templates):
        echo(escaped(f"Warning: {note}"), err=True)


def read_with(
    template: TaskTemplate, plugins: Plugins, args: TaskArguments, options: TaskOptions
) -> Task:
    """The checked task of a template, with arguments that have been read.

    Raises UsageError if the options select what the task does not have, and TaskError.
    """
    value = template.filled(args.values)
    return checked(value, template.source, plugins, options.overrides, options.selection)
