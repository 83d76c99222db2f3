"""The commands `run`, `resume` and `rerun`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from osbench.common.errors import UsageError
from osbench.common.machine.import_block import import_block
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.adhoc import ADHOC_RULES, Adhoc
from osbench.coordinator.front.cli.options.export_options import RUN_EXPORT_RULES, RunExportOptions
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option, option_set, options
from osbench.coordinator.front.cli.options.run_options import RULES, CourseOptions, ModeOptions
from osbench.coordinator.front.cli.options.shared_options import OutputOptions, workers_wait
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.options.web_options import LiveOutputOptions, WithWeb
from osbench.coordinator.load.local.local_start import EarlyStart

EPILOG = """
\b
Examples:
  osbench-coord run --url http://127.0.0.1:8080/ --rps 20 --duration 30 --limit p95=250ms
  osbench-coord run task.yaml                      local mode: own Redis, one worker per core
  osbench-coord run task.yaml --deployment mycloud
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --rps 50 --duration 30
  osbench-coord run task.yaml --report report.html --export junit=junit.xml
  osbench-coord run task.yaml --web                live view in a browser; prints its address
  osbench-coord run task.yaml --otlp               services send it their spans
  osbench-coord run task.yaml --once               one iteration, with its requests and logs
  osbench-coord run task.yaml --repeat 5           then: compare with five runs of tomorrow
  osbench-coord run task.yaml --detach             then: status, abort, runs show
  osbench-coord run nightly/ --keep-going --report night.html   all tasks of a directory

\b
Exit codes:
  0    success
  1    an SLA failed, or a workload was aborted
  2    bad usage, task, configuration or deployment
  3    iterations were lost, dropped with a worker or the coordinator, or not started
  4    the load generator was the limit, or may be why an SLA failed
  5    a hook or an export failed, or a context could not be undone
  130  interrupted
If several apply, the first of 2, 130, 3, 1, 4 and 5 counts.

Ctrl-C once lets running iterations end, within 60 s, and reports; twice stops at once.
"""


@click.command(cls=WithWeb, rules=(*RULES, *ADHOC_RULES, *RUN_EXPORT_RULES), epilog=EPILOG)
@click.argument("task", metavar="[TASK]", required=False)
@option_set(Adhoc, "adhoc")
@option_set(ModeOptions, "mode")
@option_set(CourseOptions, "course")
@option_set(TaskOptions, "task_options")
@option_set(RunExportOptions, "exports")
@option_set(LiveOutputOptions, "output")
@with_settings
def run(
    settings: CommandSettings,
    task: str | None,
    mode: ModeOptions,
    course: CourseOptions,
    task_options: TaskOptions,
    adhoc: Adhoc,
    exports: RunExportOptions,
    output: LiveOutputOptions,
) -> None:
    """Run a task file, one request or one scenario.

    If TASK is a directory, its files *.yaml, *.yml and *.json are checked, then run in the order of
    their names.

    Without [messaging] redis_url in osbench.conf, the run starts a private Redis and one worker for
    each core, and ends them with it.
    """
    if mode.write is not None:
        from osbench.coordinator.front.cli.written_task import write_task  # noqa: PLC0415 - seldom

        write_task(mode.write, adhoc.document())
        return
    if mode.detach:
        if task == "-":
            raise UsageError("--detach cannot read a task from standard input: give it as a file")
        if task is not None and Path(task).is_dir():
            raise UsageError(
                "--detach is for one task, not for a directory: `nohup osbench-coord run DIR &`"
                " runs its tasks in the background"
            )
        from osbench.coordinator.front.cli.detach import start_detached  # noqa: PLC0415 - seldom

        echo(start_detached(settings.conf.data_dir, mode.run_id))
        return
    with EarlyStart(wanted=not settings.conf.messaging.redis_url) as early:
        # workers import meanwhile
        with import_block():
            from osbench.coordinator.front.cli.commanded_runs import (  # noqa: PLC0415 - as above
                run_and_print,
            )

        asked = (mode, course, task_options, adhoc, exports, output)
        sys.exit(run_and_print(settings, task, *asked, early=early))


@click.command(cls=RuledCommand, rules=RUN_EXPORT_RULES)
@click.argument("run")
@options("The run", wait_s=workers_wait("as the run was started"))
@option_set(RunExportOptions, "exports")
@option_set(OutputOptions, "output")
@with_settings
def resume(
    settings: CommandSettings,
    run: str,
    wait_s: float | None,
    exports: RunExportOptions,
    output: OutputOptions,
) -> None:
    """Continue a run whose coordinator was killed.

    The work that workers did meanwhile counts, and their load goes on. The run directory, and
    contexts.key of the data directory, must be on this host; the coordinator must be gone. RUN is
    an id, the beginning of one, or "last". If the run is finished, its report is printed and
    exported. Exit codes are as of `run`.

    \b
    Examples:
      osbench-coord resume last
      osbench-coord resume 20260401 --wait-for-workers 60 --report report.html
    """
    from osbench.coordinator.front.cli.commanded_runs import resume_and_print  # noqa: PLC0415 - for `run`

    sys.exit(resume_and_print(settings, run, wait_s, exports, output))


@click.command(cls=RuledCommand, rules=RUN_EXPORT_RULES)
@click.argument("run", default="last")
# that of a run that the page of `web` starts
@options(new_id=option("--run-id", default="", hidden=True))
@option_set(RunExportOptions, "exports")
@option_set(OutputOptions, "output")
@with_settings
def rerun(
    settings: CommandSettings,
    run: str,
    new_id: str,
    exports: RunExportOptions,
    output: OutputOptions,
) -> None:
    """Run the task of a run again, with its arguments and options.

    This makes a new run. The task is as it was rendered then; plug-ins, data files, the
    configuration and the deployment record of that name are read again. RUN is an id, the beginning
    of one, or "last", which is the default. Exit codes are as of `run`.

    \b
    Examples:
      osbench-coord rerun
      osbench-coord rerun 20260401 --report report.html
    """
    from osbench.coordinator.front.cli.commanded_runs import rerun_and_print  # noqa: PLC0415 - for `run`

    sys.exit(rerun_and_print(settings, run, new_id, exports, output))
