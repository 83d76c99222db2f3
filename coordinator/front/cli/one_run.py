"""Runs of a command, from the task to the results; Ctrl-C ends them in order."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from oslo_config import cfg

from osbench.common.config import logs
from osbench.common.errors import DamagedRun, OsbenchError, TaskError, UsageError
from osbench.common.machine.import_block import import_block
from osbench.common.plugin.cloud_platform import cloud_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol import timers
from osbench.common.protocol.keyring import Keyring
from osbench.common.task import Task
from osbench.coordinator.front.cli.base import CommandSettings, warn_of_plugins
from osbench.coordinator.front.cli.live_view import LiveView
from osbench.coordinator.front.cli.options.adhoc import Adhoc
from osbench.coordinator.front.cli.options.task_options import TaskOptions, read_plugins, read_task
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.load.local.local_start import EarlyStart
from osbench.coordinator.load.run.connection import open_connection
from osbench.coordinator.load.run.plan import RunInterface, RunOptions, RunPlan, plan_run
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.control_requests import AbortWatch
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_log import RunLog
from osbench.coordinator.results.storage.run_retention import check_writable
from osbench.coordinator.task.taskfile import checked_task, semantics, source_validation
from osbench.coordinator.task.taskfile.selection import once

if TYPE_CHECKING:
    from osbench.coordinator.load.run.lifecycle import Run
    from osbench.coordinator.report.model.model import Report
    from osbench.coordinator.results.storage.run_store import RunStore


#: What is said at each Ctrl-C of a run.
_SAID = {
    1: f"stopping: running iterations end, within {timers.STOP_S:.0f} s; "
    "Ctrl-C again stops at once",
    2: "stopping at once; Ctrl-C again leaves the resources of contexts",
    3: "stopping without any further wait",
}
#: Notes on criteria at the head of a run.
_NOTES_MOST = 5
_OVER = "the run is over: its workers are not waited for any more"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The request for a run, as the command line has it: task, options, deployment, view.

    `checked_plan` makes a plan of it; several runs may be made of one.
    """

    #: Path of the task file, "-" for standard input; None if `adhoc` describes the task.
    source: str | None
    options: TaskOptions
    deployment: str | None
    adhoc: Adhoc = Adhoc()
    #: Shows the run in a browser.
    view: LiveView = field(default_factory=lambda: LiveView(None))
    run_options: RunOptions = RunOptions()
    #: What the first run in local mode may have begun.
    early: EarlyStart | None = None
    #: Archive that each run is sent to when it is over, if any.
    archive: RunStore | None = None


class Interrupts:
    """Counts Ctrl-C and SIGTERM over several runs, so that none between two runs is lost."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Count an interrupt; as a handler of signals, it ignores its arguments."""
        self.count += 1

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Count Ctrl-C and SIGTERM in this block instead of ending the process."""
        with _handling(self.note):
            yield


#: How long what was said of an interrupt may take to be printed, seconds.
_SPEAK_S = 10.0
#: Interrupts that stop a run at once.
_STOPS = 2


class _Relay:
    """Counts interrupts and passes each on to the run, those from before it existed, too.

    They come from signal handlers and from the thread that takes requests to end the run.
    """

    def __init__(self) -> None:
        self._count = self._passed = 0
        self._run: Run | None = None
        #: The run has its report, or its error; nothing but what it ran on is left to end.
        self.over = False
        # a signal may come while its own thread is in here
        self._lock = threading.RLock()

    def note(self, *, stop: bool = False) -> int:
        """Count an interrupt, pass it on to the run, and return the count.

        `stop`: raise the count to at least 2, which stops the run at once.
        """
        with self._lock:
            self._count = max(self._count + 1, _STOPS if stop else 0)
            self._pass()
            return self._count

    @property
    def count(self) -> int:
        """Return the number of interrupts."""
        return self._count

    def begin(self, one: Run) -> Run:
        """Pass interrupts on to the run `one` from now on, past ones at once; return it."""
        with self._lock:
            self._run = one
            self._pass()
        return one

    def _pass(self) -> None:
        while self._run is not None and self._passed < self._count:
            self._passed += 1
            self._run.interrupt()


def resume_run(
    settings: CommandSettings, directory: RunDirectory, progress: Progress, wait_s: float | None
) -> Report:
    """Resume a run whose coordinator is gone, to its end; return its report.

    A finished run returns its report at once: its coordinator may have been killed before it could
    report that. `wait_s`: longest wait for workers, seconds; None: as it was started. Locks the
    run; Ctrl-C is counted as in `execute_plan`. Raises UsageError if the run cannot be resumed,
    OsbenchError.
    """
    conf = settings.conf
    logs.begin(conf.log_level)
    finished = _take_report(directory, progress)
    if finished is not None:
        return finished
    refusal = resumable.refusal(directory)
    if refusal:
        raise UsageError(refusal)
    try:
        return _taken_up(conf, directory, progress, wait_s)
    except DamagedRun as error:
        raise _not_resumed(directory, error) from None
    except UsageError:
        # another one may have finished it while its lock was waited for
        finished = _take_report(directory, progress)
        if finished is None:
            raise
        return finished


def _take_report(directory: RunDirectory, progress: Progress) -> Report | None:
    """Return the report of a finished run, after deleting the files that only `resume` needs.

    None, and no effect, for other runs. Raises OsbenchError if its files cannot be read.
    """
    finished = resumable.report(directory)
    if finished is None:
        return None
    # most commands run a task, and have no report before its end
    from osbench.coordinator.report.model.model import Report  # noqa: PLC0415 - see above

    resumable.forget(directory)
    progress.say(f"run {directory.path.name} is finished: this is its report")
    return Report.from_json(finished)


def _taken_up(
    conf: cfg.ConfigOpts, directory: RunDirectory, progress: Progress, wait_s: float | None
) -> Report:
    # these take a while to import
    from osbench.coordinator.load.run.resumption import key_notes, plan_file  # noqa: PLC0415

    # two that begin at once both come here, and one goes on
    directory.lock()
    try:
        saved = plan_file.load(directory, conf)
        if saved.keyring is None:
            keys = Path(conf.security.key_file)
            key_notes.check_key(directory, Keyring.load(keys), keys)
    except BaseException:
        directory.close()
        raise
    plan = saved.plan
    if wait_s is not None:
        plan = replace(plan, options=replace(plan.options, wait_s=wait_s))
    with (
        contextlib.redirect_stdout(sys.stderr),
        _run_log(directory, progress) as log,
        _interruptible(progress, Interrupts(), directory) as relay,
        contextlib.closing(directory),
        open_connection(
            conf,
            processes=plan.local_processes,
            virtual_users=plan.local_users,
            plugin_paths=plan.plugins.paths,
            modules=plan.worker_modules,
            keyring=saved.keyring,
            earlier=directory.path,
            wait_s=plan.wait_s,
            interrupts=lambda: relay.count,
        ) as connection,
        progress,
    ):
        log.follow(connection.worker_log)
        progress.say(f"run {plan.run_id}: resumed")
        run = relay.begin(_run_of(plan, progress))
        try:
            return run.resume(connection, directory, saved.started_at)
        finally:
            relay.over = True


def _not_resumed(directory: RunDirectory, error: DamagedRun) -> OsbenchError:
    """Return an error with the reason why a damaged run is not resumed, and remedies."""
    name = directory.path.name
    refused = OsbenchError(
        f"run {name} cannot be resumed: {error.problem}; its iterations cannot be accounted for. "
        f"Restore the file from a copy; `osbench-coord results {name} --csv --damaged` prints the "
        f"rest of it, `osbench-coord cleanup {name}` undoes its contexts"
    )
    refused.exit_code = error.exit_code
    return refused


def run_task(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    interrupts: Interrupts | None = None,
) -> Report:
    """Run a task to its end; return the report of the run.

    `interrupts` also counts the interrupts of this run, even if they came too late to end it.
    Output of plug-ins goes to stderr meanwhile: stdout may be read by a program. Raises
    OsbenchError if the task is faulty or the run has no report.
    """
    logs.begin(settings.conf.log_level)
    check_writable(settings.conf.data_dir)
    _, plan = checked_plan(settings, wanted)
    return execute_plan(plan, progress, interrupts or Interrupts(), wanted.view, wanted.early)


def rerun_task(
    settings: CommandSettings, before: RunDirectory, progress: Progress, run_id: str
) -> Report:
    """Repeat the request of the run `before`, as the new run `run_id`; return its report.

    Plug-ins, data files and deployment are read again. Raises OsbenchError if the request is
    unknown, the task does not fit any more, or the run has no report.
    """
    from osbench.coordinator.load.run.resumption import run_request  # noqa: PLC0415 - takes a while

    conf = settings.conf
    logs.begin(conf.log_level)
    check_writable(conf.data_dir)
    asked = run_request.load(before, conf)
    plugins = warn_of_plugins(Plugins(asked.plugin_paths, asked.prefer))
    deployment = None if asked.deployment is None else settings.deployments.get(asked.deployment)
    problems = semantics.check(asked.task, plugins)
    problems = problems or source_validation.check(asked.task, plugins, deployment)
    if problems:
        raise TaskError(asked.task.source, problems)
    options = replace(asked.options, run_id=run_id)
    return execute_plan(
        plan_run(asked.task, plugins, deployment, conf, options), progress, Interrupts()
    )


def execute_plan(
    plan: RunPlan,
    progress: Progress,
    interrupts: Interrupts,
    view: LiveView | None = None,
    early: EarlyStart | None = None,
) -> Report:
    """Run a plan to its end; return the report of the run.

    The first interrupt drains the load, the second stops it. `view` shows the run in a browser,
    `early` may have begun local mode. Logs and messages also go to the run directory, prints to
    stderr. Raises OsbenchError if the run has no report.
    """
    if view is not None:
        view.begin(plan.conf.data_dir, plan.run_id)
    notes: tuple[str, ...] = ()
    if plan.deployment is not None and (cloud := cloud_of(plan.deployment)) is not None:
        logins = cloud.single_logins(plan.deployment, plan.lasts_s)
        plan, notes = replace(plan, deployment=logins.deployment), logins.notes
    directory = RunDirectory.of(plan.conf.data_dir, plan.run_id)
    with (
        contextlib.redirect_stdout(sys.stderr),
        _run_log(directory, progress) as log,
        _interruptible(progress, interrupts, directory) as relay,
        open_connection(
            plan.conf,
            processes=plan.local_processes,
            virtual_users=plan.local_users,
            plugin_paths=plan.plugins.paths,
            modules=plan.worker_modules,
            wait_s=plan.wait_s,
            interrupts=lambda: relay.count,
            early=early,
        ) as connection,
        progress,
    ):
        log.follow(connection.worker_log)
        where = "local mode" if connection.local else "shared workers"
        count = len(plan.task.workloads)
        progress.say(
            f"run {plan.run_id}: {count} {'workload' if count == 1 else 'workloads'}, {where}"
        )
        for note in (*notes, *_weak_criteria(plan)):
            progress.say(note)
        run = relay.begin(_run_of(plan, progress))
        try:
            return run.execute(connection)
        finally:
            relay.over = True


def _weak_criteria(plan: RunPlan) -> list[str]:
    """Return notes on too easy criteria: `_NOTES_MOST`, and a count of others; [] for `--once`."""
    if plan.options.shown:
        return []  # one iteration, to be looked at
    notes = semantics.criteria_notes(plan.task, plan.plugins, plan.conf.benchmark.silenced_notes)
    said = [f"note: {note}" for note in notes[:_NOTES_MOST]]
    left = len(notes) - len(said)
    return [*said, f"note: {left} more by `osbench-coord validate`"] if left else said


def _run_of(plan: RunPlan, progress: Progress) -> Run:
    # half a second of imports, in which the workers of local mode start
    with import_block():
        from osbench.coordinator.load.run.lifecycle import Run  # noqa: PLC0415 - see above

    return Run(plan, RunInterface(progress=progress, say=progress.say))


def checked_plan(settings: CommandSettings, wanted: Wanted) -> tuple[Task, RunPlan]:
    """Return the checked task and the plan of its run.

    To show requests of iterations (`--once`), the task is reduced to one iteration per workload,
    and `conf` is changed to trace it. The record in use is left out for an ad hoc address that it
    does not name. Raises OsbenchError if task, plug-ins or deployment are faulty.
    """
    conf = settings.conf
    task, plugins = _task(conf, wanted)
    deployment = settings.deployment(wanted.deployment)
    if deployment and wanted.deployment is None and not wanted.adhoc.is_of(deployment.hosts):
        # the record in use was not requested, and has nothing of an address elsewhere
        deployment = None
    problems = source_validation.check(task, plugins, deployment)
    if problems:
        raise TaskError(task.source, problems)
    if wanted.run_options.shown:
        task = once(task)
        conf.set_override("profiler_sample_rate", 1.0, "benchmark")
    return task, plan_run(task, plugins, deployment, conf, wanted.run_options)


def _task(conf: cfg.ConfigOpts, wanted: Wanted) -> tuple[Task, Plugins]:
    if wanted.source is not None:
        return read_task(wanted.source, conf, wanted.options)
    plugins = read_plugins(conf, wanted.options)
    document, options = wanted.adhoc.document(), wanted.options
    source = "--scenario" if wanted.adhoc.url is None else "--url"
    task = checked_task(document, source, plugins, options.overrides, options.selection)
    return task, plugins


@contextlib.contextmanager
def _run_log(directory: RunDirectory, progress: Progress) -> Iterator[RunLog]:
    """Write log records and messages to the run directory, too, within this block.

    Yields the log. `progress` passes the messages on.
    """
    with RunLog(directory) as log:
        progress.listener = log.say
        try:
            yield log
        finally:
            progress.listener = None


@contextlib.contextmanager
def _interruptible(
    progress: Progress, interrupts: Interrupts, directory: RunDirectory
) -> Iterator[_Relay]:
    """Pass Ctrl-C and SIGTERM on to a run within this block, and print their effect.

    The first drains the load, the second stops it, the third leaves even contexts. `abort` counts
    as one, `abort --now` as at least the second. `interrupts` counts each as one. Yields the relay,
    to be given the run.
    """

    relay = _Relay()
    # a signal may come in the middle of a line: its handler must not write to the same stream
    sentences: SimpleQueue[str] = SimpleQueue()
    speaker = threading.Thread(
        target=_speak, args=(sentences, progress), name="interrupts", daemon=True
    )

    def note(number: int, frame: FrameType | None) -> None:
        end(False)

    def end(stop: bool) -> None:
        interrupts.note()
        said = _SAID.get(relay.note(stop=stop))
        if relay.over:
            sentences.put(_OVER)
        elif said:
            sentences.put(f"{said}{progress.longest}")

    speaker.start()
    try:
        with _handling(note), AbortWatch(directory, end):
            yield relay
    finally:
        sentences.put("")
        speaker.join(_SPEAK_S)


def _speak(sentences: SimpleQueue[str], progress: Progress) -> None:
    """Print messages of a queue as they come, until an empty one; run in a separate thread."""
    while sentence := sentences.get():
        progress.say(sentence)


@contextlib.contextmanager
def _handling(note: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
