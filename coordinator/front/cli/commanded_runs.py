"""The commands `run`, `resume` and `rerun`, once their options are read.

This module imports all that a run needs; the workers of local mode are started before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.base import CommandSettings, console, echo
from osbench.coordinator.front.cli.live_view import LiveView
from osbench.coordinator.front.cli.one_run import Wanted, rerun_task, resume_run, run_task
from osbench.coordinator.front.cli.options.adhoc import Adhoc
from osbench.coordinator.front.cli.options.export_options import RunExportOptions
from osbench.coordinator.front.cli.options.run_options import CourseOptions, ModeOptions
from osbench.coordinator.front.cli.options.shared_options import OutputOptions
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.options.web_options import LiveOutputOptions
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.run_exports import RunExports, exports_of
from osbench.coordinator.load.local.local_start import EarlyStart
from osbench.coordinator.load.run.plan import RunOptions, new_run_id
from osbench.coordinator.results.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from osbench.coordinator.report.model.model import Report


def run_and_print(  # noqa: PLR0913 - one per set of options
    settings: CommandSettings,
    task: str | None,
    mode: ModeOptions,
    course: CourseOptions,
    task_options: TaskOptions,
    adhoc: Adhoc,
    exports: RunExportOptions,
    output: LiveOutputOptions,
    *,
    early: EarlyStart,
) -> int:
    """Run a task in the foreground, print and export its results; return the exit code.

    `task`: path of a file or a directory of tasks; None if `adhoc` describes the task. `early` may
    have started workers. A live view may stay until Ctrl-C. Raises OsbenchError if options do not
    go together, or the run cannot begin or has no report.
    """
    run_id = mode.run_id or new_run_id()
    progress = Progress(quiet=output.quiet)
    directory = RunDirectory.of(settings.conf.data_dir, run_id)
    run_exports = exports_of(exports, settings, task_options.plugin_path, directory, progress.say)
    wanted = Wanted(
        source=task,
        adhoc=adhoc,
        options=task_options,
        deployment=course.deployment,
        view=LiveView(output.web, linger=output.web_linger),
        run_options=_run_options(course, mode, run_id),
        early=early,
        archive=run_exports.archive,
    )
    try:
        if task is not None and Path(task).is_dir():
            code = _in_directory(mode, settings, wanted, exports, progress, as_json=output.as_json)
        elif mode.keep_going:
            raise UsageError("--keep-going is for a directory of tasks; leave it out")
        elif mode.once or mode.repeat:
            code = _in_mode(mode, settings, wanted, run_exports, progress, as_json=output.as_json)
        else:
            with run_exports.around():
                report = run_task(settings, wanted, progress)
            code = _print_report(report, run_exports, output)
        wanted.view.linger()
    finally:
        wanted.view.end()
    return code


def _run_options(course: CourseOptions, mode: ModeOptions, run_id: str) -> RunOptions:
    return RunOptions(
        workers=course.workers or (1 if mode.once else None),
        join=course.join,
        wait_s=course.wait_for_workers,
        run_id=run_id,
        tags=course.tag,
        abort_on_sla=course.abort_on_sla_failure,
        stop_on_error=course.stop_on_error,
        otlp=course.otlp or "",
        traces_from=course.traces_from or "",
        shown=mode.once + mode.verbose,
    )


def _in_mode(
    mode: ModeOptions,
    settings: CommandSettings,
    wanted: Wanted,
    exports: RunExports,
    progress: Progress,
    *,
    as_json: bool,
) -> int:
    """Run one iteration, or a task repeatedly; return the exit code. Raises OsbenchError."""
    # most runs need neither, and these take a while to import
    if mode.once:
        from osbench.coordinator.front.cli.run_views.single_iteration import (  # noqa: PLC0415 - as above
            run_single,
        )

        return run_single(settings, wanted, exports, as_json=as_json)
    from osbench.coordinator.front.cli.repeated_runs import run_repeatedly  # noqa: PLC0415 - see above

    return run_repeatedly(settings, wanted, progress, times=mode.repeat or 1, as_json=as_json)


def _in_directory(
    mode: ModeOptions,
    settings: CommandSettings,
    wanted: Wanted,
    exports: RunExportOptions,
    progress: Progress,
    *,
    as_json: bool,
) -> int:
    """Run the tasks of a directory; return the exit code.

    Raises UsageError for options that do not go with a directory, OsbenchError.
    """
    from osbench.coordinator.front.cli.task_directories import (  # noqa: PLC0415 - seldom
        run_directory,
    )

    if mode.once or mode.repeat:
        raise UsageError("--once and --repeat are for one task, not for a directory; give a file")
    if wanted.view.wanted:
        raise UsageError(
            "--web is for one run, not for a directory: `osbench-coord web` shows all runs"
        )
    if exports.exports or exports.metrics:
        raise UsageError(
            "--export and --metrics are for one run, not for a directory:"
            " `osbench-coord report RUN` exports each of its runs"
        )
    return run_directory(
        settings,
        wanted,
        progress,
        keep_going=mode.keep_going,
        page=exports.report,
        as_json=as_json,
    )


def resume_and_print(
    settings: CommandSettings,
    run: str,
    wait_s: float | None,
    exports: RunExportOptions,
    output: OutputOptions,
) -> int:
    """Resume a run, write its exports and print its result; return the exit code.

    `run`: an id, its beginning, or "last". A finished run is not run again: its report is printed
    and exported. `wait_s`: longest wait for workers, seconds; None: as the run was started. Raises
    OsbenchError.
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    progress = Progress(quiet=output.quiet)
    run_exports = exports_of(exports, settings, (), directory, progress.say)
    with run_exports.around():
        report = resume_run(settings, directory, progress, wait_s)
    return _print_report(report, run_exports, output)


def rerun_and_print(
    settings: CommandSettings,
    run: str,
    new_id: str,
    exports: RunExportOptions,
    output: OutputOptions,
) -> int:
    """Run the task of a run again as a new run, export and print its result; return the exit code.

    `run`: the run that is repeated. `new_id`: id of the new run; "" for a generated one. Raises
    OsbenchError.
    """
    before = RunDirectory.find(settings.conf.data_dir, run)
    progress = Progress(quiet=output.quiet)
    run_id = new_id or new_run_id()
    directory = RunDirectory.of(settings.conf.data_dir, run_id)
    run_exports = exports_of(exports, settings, (), directory, progress.say)
    with run_exports.around():
        report = rerun_task(settings, before, progress, run_id)
    return _print_report(report, run_exports, output)


def _print_report(report: Report, exports: RunExports, output: OutputOptions) -> int:
    """Export a run that has ended, and print its report, or its JSON object if `output` wants it.

    Returns its exit code, which failed exports change.
    """
    report = exports.write(report)
    if output.as_json:
        echo(json.dumps(report.to_json()))
    else:
        # not needed until here, and local mode starts sooner without it
        from osbench.coordinator.report.text import render  # noqa: PLC0415 - see above

        render(report, console(), details=output.details)
    return report.code
