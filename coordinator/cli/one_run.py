"""One run of a command, from the task to its results; Ctrl-C ends it in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from oslo_config import cfg

from osbench.common.config import logs
from osbench.common.errors import TaskError, UsageError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.cli.adhoc import Adhoc
from osbench.coordinator.cli.base import CommandSettings
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.task_options import TaskOptions, read_plugins, read_task
from osbench.coordinator.cli.web_options import live_view
from osbench.coordinator.run.connection import connected
from osbench.coordinator.run.lifecycle import Run
from osbench.coordinator.run.plan import RunOptions, RunPlan, plan_run
from osbench.coordinator.run.resumption import plan_file
from osbench.coordinator.run.run_load import RunInterface
from osbench.coordinator.storage import resumable
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.taskfile import checked, rally_validation
from osbench.coordinator.web.address import Address


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The arguments of the command line."""

    #: Path of the task file, "-" for standard input; None where `adhoc` describes the task.
    source: str | None
    adhoc: Adhoc
    options: TaskOptions
    deployment: str | None
    #: Where the live view is served; None: it is not.
    web: Address | None
    run_options: RunOptions


class Interrupts:
    """Counts Ctrl-C and SIGTERM over several runs, so that none between two of them is lost."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, number: int = 0, frame: FrameType | None = None) -> None:
        """One more; also a handler of signals."""
        self.count += 1

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """While this goes on, an interrupt ends nothing by itself."""
        with _handling(self.note):
            yield


def resume_once(
    settings: CommandSettings, directory: RunDirectory, progress: Progress, wait_s: float | None
) -> dict[str, Any]:
    """Go on with a run whose coordinator is gone, to its end; returns its JSON object.

    Where the run is finished, that is all there is to do: its coordinator may have been killed
    before it could say so. `wait_s`: longest wait for workers, seconds. Raises OsbenchError.
    """
    conf = settings.conf
    logs.begin(conf.log_level)
    finished = resumable.report(directory)
    if finished is not None:
        resumable.forget(directory)
        progress.say(f"run {directory.path.name} is finished: this is its report")
        return finished
    refusal = resumable.refusal(directory)
    if refusal:
        raise UsageError(refusal)
    # two that begin at once both come here, and one goes on
    directory.lock()
    try:
        saved = plan_file.load(directory, conf)
    except BaseException:
        directory.close()
        raise
    plan = saved.plan
    if wait_s is not None:
        plan = replace(plan, options=replace(plan.options, wait_s=wait_s))
    one = Run(plan, RunInterface(progress=progress, say=progress.say))
    with (
        _interruptible(one, progress, Interrupts()),
        contextlib.closing(directory),
        connected(
            conf,
            processes=plan.local_processes,
            virtual_users=plan.local_users,
            plugin_paths=plan.plugins.paths,
            keyring=saved.keyring,
            earlier=directory.path,
        ) as connection,
        progress,
    ):
        progress.say(f"run {plan.run_id}: resumed")
        return one.resume(connection, directory, saved.started_at)


def run_once(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    interrupts: Interrupts | None = None,
) -> dict[str, Any]:
    """Run a task to its end and return the JSON object of the run. Raises OsbenchError.

    `interrupts` counts those of this run as well, also one that came too late to end it.
    """
    conf = settings.conf
    logs.begin(conf.log_level)
    task, plan = checked_plan(settings, wanted)
    one = Run(plan, RunInterface(progress=progress, say=progress.say))
    with (
        _interruptible(one, progress, interrupts or Interrupts()),
        live_view(wanted.web, conf.data_dir, plan.run_id),
        connected(
            conf,
            processes=plan.local_processes,
            virtual_users=plan.local_users,
            plugin_paths=[*conf.coordinator.plugin_path, *wanted.options.plugin_path],
        ) as connection,
        progress,
    ):
        where = "local mode" if connection.local else "shared workers"
        count = len(task.workloads)
        progress.say(
            f"run {plan.run_id}: {count} {'workload' if count == 1 else 'workloads'}, {where}"
        )
        return one.execute(connection)


def checked_plan(settings: CommandSettings, wanted: Wanted) -> tuple[Task, RunPlan]:
    """What a run of it would do. Raises OsbenchError where task or configuration are wrong."""
    conf = settings.conf
    task, plugins = _task(conf, wanted)
    deployment = settings.deployment(wanted.deployment)
    problems = rally_validation.check(task, plugins, deployment)
    if problems:
        raise TaskError(task.source, problems)
    return task, plan_run(task, plugins, deployment, conf, wanted.run_options)


def _task(conf: cfg.ConfigOpts, wanted: Wanted) -> tuple[Task, Plugins]:
    if wanted.source is not None:
        return read_task(wanted.source, conf, wanted.options)
    plugins = read_plugins(conf, wanted.options)
    document, options = wanted.adhoc.document(), wanted.options
    task = checked(document, "--scenario", plugins, options.overrides, options.selection)
    return task, plugins


@contextlib.contextmanager
def _interruptible(one: Run, progress: Progress, interrupts: Interrupts) -> Iterator[None]:
    """First Ctrl-C (or SIGTERM) drains, the second stops."""

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.note()
        if one.interrupt() == 1:
            progress.say("stopping: running iterations end; Ctrl-C again stops at once")

    with _handling(note):
        yield


@contextlib.contextmanager
def _handling(note: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
