"""Options that select task and plug-ins, for every command that reads a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oslo_config import cfg

from osbench.common.text.escaping import one_line
from osbench.coordinator.front.cli.base import echo, warn_of_plugins
from osbench.coordinator.front.cli.options.option_table import OptionSet, repeated_option
from osbench.coordinator.front.cli.options.shared_options import plugin_paths, preferred_plugins

if TYPE_CHECKING:
    from osbench.common.plugin.plugins import Plugins
    from osbench.common.task import Task
    from osbench.coordinator.task.taskfile.args import TaskArguments
    from osbench.coordinator.task.taskfile.loading import TaskTemplate
    from osbench.coordinator.task.taskfile.selection import Selection


@dataclass(frozen=True, kw_only=True)
class TaskOptions(OptionSet):
    """Options for reading a task: its arguments, the selected parts, and plug-ins."""

    SECTION = "Task and plug-ins"

    task_args: tuple[str, ...] = repeated_option(
        "--task-args",
        metavar="ARGS",
        help="Arguments of the task's template: a YAML or JSON object, or k=v,k2=v2.",
    )
    task_args_file: tuple[str, ...] = repeated_option(
        "--task-args-file",
        metavar="FILE",
        help="YAML or JSON file of template arguments; overridden by later files and --task-args.",
    )
    overrides: tuple[str, ...] = repeated_option(
        "--set",
        metavar="SUBTASK.WORKLOAD.KEY=VALUE",
        help="Set a value of the task, in YAML, as in 0.0.runner.times=5; may be repeated.",
    )
    subtask: tuple[str, ...] = repeated_option(
        "--subtask",
        metavar="TITLE|N",
        help="Run only this subtask, by title or position from 0; may be repeated.",
    )
    workload: tuple[str, ...] = repeated_option(
        "--workload",
        metavar="NAME|SCENARIO|N",
        help="Run only this workload, by name, scenario or position from 0; may be repeated.",
    )
    #: In addition to the configured paths.
    plugin_path: tuple[str, ...] = plugin_paths()
    prefer: str = preferred_plugins()

    @property
    def selection(self) -> Selection:
        """The selected subtasks and workloads of the task; all if no option selects some."""
        # workers of local mode start before task files are read
        from osbench.coordinator.task.taskfile.selection import Selection  # noqa: PLC0415 - see above

        return Selection(subtasks=self.subtask, workloads=self.workload)


def read_plugins(conf: cfg.ConfigOpts, options: TaskOptions) -> Plugins:
    """Return the plug-ins of the configured paths and of the command line.

    Prints warnings on classes that look like plug-ins but are not. Raises PluginError.
    """
    from osbench.common.plugin.plugins import Plugins  # noqa: PLC0415 - as `selection`

    paths = (*conf.coordinator.plugin_path, *options.plugin_path)
    return warn_of_plugins(Plugins(paths, options.prefer), faults=False)


def read_task(source: str, conf: cfg.ConfigOpts, options: TaskOptions) -> tuple[Task, Plugins]:
    """Return the checked task of a path (`-`: standard input), and its plug-ins.

    Prints warnings on unused arguments of files and on classes that are not plug-ins. Raises
    UsageError for bad or, on the command line, unused arguments, and a selection that matches
    nothing; PluginError for bad plug-ins, TaskError for the rest.
    """
    from osbench.coordinator.task.taskfile import read_args  # noqa: PLC0415 - as `selection`
    from osbench.coordinator.task.taskfile.loading import TaskTemplate  # noqa: PLC0415 - as `selection`

    plugins = read_plugins(conf, options)
    args = read_args(options.task_args, options.task_args_file)
    template = TaskTemplate(source)
    warn_of_unused(args, [template.names()])
    return read_with(template, plugins, args, options), plugins


def warn_of_unused(args: TaskArguments, templates: Sequence[frozenset[str] | None]) -> None:
    """Print warnings on template arguments of files that no template uses.

    Raises UsageError for unused arguments of the command line. `templates`: the names that each
    template uses; if one is None (unknown), nothing is unused.
    """
    for note in args.refuse_unused(templates):
        echo(one_line(f"Warning: {note}"), err=True)


def read_with(
    template: TaskTemplate, plugins: Plugins, args: TaskArguments, options: TaskOptions
) -> Task:
    """Return the checked task of `template`, filled in with `args`.

    `options` override and select parts of it. Raises UsageError if they select a part that the task
    does not have, and TaskError.
    """
    from osbench.coordinator.task.taskfile import checked_task  # noqa: PLC0415 - as `selection`

    value = template.filled(args.values)
    return checked_task(value, template.source, plugins, options.overrides, options.selection)
