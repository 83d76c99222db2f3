"""The commands `run` and `resume`."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

import click

from osbench.common.errors import UsageError
from osbench.coordinator.cli.adhoc import Adhoc, adhoc_options
from osbench.coordinator.cli.base import CommandSettings, DurationType, console, echo, with_settings
from osbench.coordinator.cli.detach import start_detached
from osbench.coordinator.cli.export_options import ExportOptions, run_export_options
from osbench.coordinator.cli.one_run import Wanted, resume_once, run_once
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.run_exports import RunExports, chosen_exports
from osbench.coordinator.cli.task_options import TaskOptions, task_options
from osbench.coordinator.cli.web_options import WithWeb, web_option
from osbench.coordinator.run.plan import RunOptions, new_run_id
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.web.address import Address

EPILOG = """
\b
Examples:
  osbench-coord run task.yaml                      local mode: own Redis, one worker per core
  osbench-coord run task.yaml --deployment mycloud
  osbench-coord run task.yaml --workers 8 --wait-for-workers 120
  osbench-coord run task.yaml --subtask 'Boot servers' --workload 0
  osbench-coord run task.yaml --json > result.json
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --rps 50 --duration 30
  osbench-coord run task.yaml --report report.html --export junit=junit.xml
  osbench-coord run task.yaml --web                live view in a browser; prints its address
  osbench-coord run task.yaml --once               one iteration, with its requests and logs
  osbench-coord run task.yaml --repeat 5           then: compare with five runs of tomorrow
  osbench-coord run task.yaml --detach             then: status, abort, runs show

\b
Exit codes, the first that applies:
  2 bad usage, task, configuration or deployment   130 interrupted
  3 iterations lost, dropped with a worker or the coordinator, or not started
  4 the generator was the limit
  1 an SLA failed, or a workload was aborted       5 a context could not be undone
  0 success

Ctrl-C once lets running iterations end and reports; twice stops at once.
"""


@click.command(cls=WithWeb, epilog=EPILOG)
@click.argument("task", metavar="[TASK]", required=False)
@click.option("--deployment", metavar="NAME", help="Deployment record; default: the one in use.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Worker processes to use; default: all free ones.",
)
@click.option(
    "--wait-for-workers",
    type=DurationType(),
    metavar="DURATION",
    help="How long to wait for workers; default: [coordinator] wait_for_workers_s.",
)
@click.option(
    "--tag", multiple=True, help="Tag of the run, in addition to the task's; may be repeated."
)
@click.option(
    "--abort-on-sla-failure",
    is_flag=True,
    help="Stop all load when an SLA cannot be met any more; start no further workload.",
)
@click.option(
    "--stop-on-error",
    is_flag=True,
    help="End the run where the contexts or arguments of a workload fail; by default it goes on "
    "with the next workload.",
)
@click.option(
    "--repeat",
    type=click.IntRange(2),
    metavar="N",
    help="Run the task N times, one after the other, and print how much the runs differ.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Run one iteration of each workload; print requests, bodies, prints, logs, traceback.",
)
@click.option(
    "--verbose", is_flag=True, help="With --once: header fields, longer bodies, more logs."
)
@click.option("--detach", is_flag=True, help="Run in the background and print the run's id.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the report.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
@web_option
@click.option("--run-id", default="", hidden=True, help="Id given out by --detach.")
@run_export_options
@adhoc_options
@task_options
@with_settings
def run(  # noqa: PLR0913 - one per option of the command
    settings: CommandSettings,
    task: str | None,
    deployment: str | None,
    workers: int | None,
    wait_for_workers: float | None,
    tag: tuple[str, ...],
    abort_on_sla_failure: bool,
    stop_on_error: bool,
    repeat: int | None,
    once: bool,
    verbose: bool,
    detach: bool,
    quiet: bool,
    as_json: bool,
    web: Address | None,
    run_id: str,
    adhoc: Adhoc,
    options: TaskOptions,
    wanted_exports: ExportOptions,
) -> None:
    """Run a task file, or one scenario, and print the report.

    Without [messaging] redis_url in osbench.conf a private Redis and workers for the cores are
    started for the run, and removed with it.
    """
    if (task is None) == (not adhoc.given):
        raise UsageError("give a task file, or --scenario NAME; `osbench-coord init` writes a task")
    if task is not None and adhoc.without_effect:
        raise UsageError(
            f"{' and '.join(adhoc.without_effect)} cannot be combined with a task file, which says"
            " this itself: --set SUBTASK.WORKLOAD.KEY=VALUE changes it, as in"
            " --set 0.0.runner.times=5"
        )
    if adhoc.given and (options.task_args or options.task_args_file):
        raise UsageError("--task-args fills in a task file: give the scenario --arg NAME=VALUE")
    if once and (repeat or detach or quiet or adhoc.load_given):
        raise UsageError(
            "--once runs one iteration in the foreground: it cannot be combined with --repeat,"
            " --detach, --quiet, --rps, --duration, --times or --concurrency"
        )
    if verbose and not once:
        raise UsageError("--verbose is for --once")
    if repeat and (detach or web or wanted_exports.given or wanted_exports.metrics):
        raise UsageError(
            "--repeat makes several runs: it cannot be combined with --detach, --web, --metrics or"
            " exports; `osbench-coord report RUN` exports each of them"
        )
    if detach and web:
        raise UsageError("--web ends with its command; use --detach and `osbench-coord web`")
    if detach:
        click.echo(start_detached(settings.conf.data_dir, new_run_id()))
        return
    run_id = run_id or new_run_id()
    directory = RunDirectory.of(settings.conf.data_dir, run_id)
    progress = Progress(quiet=quiet)
    chosen = chosen_exports(
        wanted_exports, settings.conf, options.plugin_path, directory, progress.say
    )
    metrics = wanted_exports.metrics or settings.conf.coordinator.metrics_address
    exports = RunExports(chosen, directory, progress.say, metrics)
    wanted = Wanted(
        source=task,
        adhoc=adhoc,
        options=options,
        deployment=deployment,
        web=web,
        run_options=RunOptions(
            workers=workers or (1 if once else None),
            wait_s=wait_for_workers,
            run_id=run_id,
            tags=tag,
            abort_on_sla=abort_on_sla_failure,
            stop_on_error=stop_on_error,
            shown=once + verbose,
        ),
    )
    if repeat:
        # most runs are not compared with others, and this takes a while to import
        from osbench.coordinator.cli.repeated_runs import (  # noqa: PLC0415 - see above
            run_repeatedly,
        )

        sys.exit(run_repeatedly(settings, wanted, progress, times=repeat, as_json=as_json))
    if once:
        from osbench.coordinator.cli.run_views.single_iteration import (  # noqa: PLC0415 - as above
            run_single,
        )

        sys.exit(run_single(settings, wanted, exports, as_json=as_json))
    with exports.around():
        summary = run_once(settings, wanted, progress)
    end(summary, exports, as_json=as_json)


@click.command()
@click.argument("run")
@click.option(
    "--wait-for-workers",
    type=DurationType(),
    metavar="DURATION",
    help="How long to wait for workers; default: as the run was started.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the report.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
@run_export_options
@with_settings
def resume(
    settings: CommandSettings,
    run: str,
    wait_for_workers: float | None,
    quiet: bool,
    as_json: bool,
    wanted_exports: ExportOptions,
) -> None:
    """Go on with a run whose coordinator was killed, to its report.

    What workers have done meanwhile counts, and their load goes on. The run directory, and
    contexts.key of the data directory, must be on this host; the coordinator must be gone. RUN is
    an id, the beginning of one, or "last". If the run is finished, its report is printed and
    exported. Exit codes are those of `run`.

    \b
    Examples:
      osbench-coord resume last
      osbench-coord resume 20260401 --wait-for-workers 60 --report report.html
    """
    directory = RunDirectory.find(settings.conf.data_dir, run)
    progress = Progress(quiet=quiet)
    chosen = wanted_exports.chosen(settings.conf, ())
    metrics = wanted_exports.metrics or settings.conf.coordinator.metrics_address
    exports = RunExports(chosen, directory, progress.say, metrics)
    with exports.around():
        summary = resume_once(settings, directory, progress, wait_for_workers)
    end(summary, exports, as_json=as_json)


def end(summary: dict[str, Any], exports: RunExports, *, as_json: bool) -> NoReturn:
    """Export and print a run that has ended."""
    summary = exports.write(summary)
    if as_json:
        echo(json.dumps(summary))
    else:
        # not needed until here, and local mode starts sooner without it
        from osbench.coordinator.report.text import render  # noqa: PLC0415 - see above

        render(summary, console())
    sys.exit(summary["exit_code"])
