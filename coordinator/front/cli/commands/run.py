"""The commands `run`, `resume` and `rerun`: their options, and rules between these."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from osbench.common.errors import UsageError
from osbench.common.import_block import import_block
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.adhoc import ADHOC_RULES, LOAD, Adhoc
from osbench.coordinator.front.cli.options.export_options import RUN_EXPORT_RULES, RunExportOptions
from osbench.coordinator.front.cli.options.option_rules import Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    options,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import (
    FleetOptions,
    OutputOptions,
    workers_wait,
)
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.options.web_options import (
    OTLP,
    BackendUrl,
    ListenAddress,
    LiveOutputOptions,
    WithWeb,
)
from osbench.coordinator.load.local.local_start import EarlyStart

EPILOG = """
\b
Examples:
  osbench-coord run --url http://127.0.0.1:8080/ --rps 20 --duration 30 --limit p95=250ms
  osbench-coord run task.yaml                      local mode: own Redis, one worker per core
  osbench-coord run task.yaml --deployment mycloud
  osbench-coord run task.yaml --workers 8 --wait-for-workers 120
  osbench-coord run task.yaml --subtask 'Boot servers' --workload 0
  osbench-coord run task.yaml --json > result.json
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --rps 50 --duration 30
  osbench-coord run task.yaml --report report.html --export junit=junit.xml
  osbench-coord run task.yaml --web                live view in a browser; prints its address
  osbench-coord run task.yaml --otlp               services send it their spans
  osbench-coord run task.yaml --traces-from tempo+http://tempo:3200
  osbench-coord run task.yaml --once               one iteration, with its requests and logs
  osbench-coord run task.yaml --repeat 5           then: compare with five runs of tomorrow
  osbench-coord run task.yaml --detach             then: status, abort, runs show
  osbench-coord run nightly/ --keep-going --report night.html   all tasks of a directory
  osbench-coord run task.yaml --archive s3://team-runs/shop

\b
Exit codes, the first that applies:
  2 bad usage, task, configuration or deployment   130 interrupted
  3 iterations lost, dropped with a worker or the coordinator, or not started
  1 an SLA failed, or a workload was aborted
  4 the generator was the limit, or may be why an SLA failed
  5 a context could not be undone                  0 success

Ctrl-C once lets running iterations end, within 60 s, and reports; twice stops at once.
"""


@dataclass(frozen=True, kw_only=True)
class ModeOptions(OptionSet):
    """Options for the way in which a task is run: once, repeatedly, in the background."""

    SECTION = "Mode"

    once: bool = flag(
        "--once",
        help="Run one iteration of each workload; print requests, bodies, prints, logs, traceback.",
    )
    verbose: bool = flag("--verbose", help="With --once: header fields, longer bodies, more logs.")
    repeat: int | None = option(
        "--repeat",
        type=click.IntRange(2),
        metavar="N",
        help="Run the task N times, one after the other, and print how much the runs differ.",
    )
    keep_going: bool = flag(
        "--keep-going",
        help="Of a directory of tasks run the next ones, too, if one does not end with 0.",
    )
    detach: bool = flag("--detach", help="Run in the background and print the run's id.")
    write: str | None = option(
        "--write",
        metavar="FILE",
        help="Write the task that --url or --scenario and its load stand for, and run nothing; -"
        " is standard output.",
    )
    #: Id given out by `--detach`, or by the page of `web`.
    run_id: str = option("--run-id", default="", hidden=True)


@dataclass(frozen=True, kw_only=True)
class CourseOptions(FleetOptions):
    """Options for a run: deployment, workers, tags, sources of spans, reasons to end it early."""

    SECTION = "The run"

    tag: tuple[str, ...] = repeated_option(
        "--tag", help="Tag of the run, in addition to the task's; may be repeated."
    )
    abort_on_sla_failure: bool = flag(
        "--abort-on-sla-failure",
        help="Stop all load when an SLA cannot be met any more; start no further workload.",
    )
    otlp: str | None = option(
        OTLP,
        type=ListenAddress(),
        metavar="[ADDR:PORT]",
        help="Receive spans of services by OTLP, by default at 127.0.0.1:4318; iterations are "
        "traced without a key and a trace store then. Default: [traces] otlp_listen.",
    )
    traces_from: str | None = option(
        "--traces-from",
        type=BackendUrl(),
        metavar="URL",
        help="Query the traces of iterations from Tempo or Jaeger at the end, without a key and a"
        " trace store: tempo+http://HOST:3200, jaeger+http://HOST:16686, or with https. Default:"
        " [traces] query_url.",
    )
    stop_on_error: bool = flag(
        "--stop-on-error",
        help="End the run where the contexts or arguments of a workload fail; by default it goes"
        " on with the next workload.",
    )


RULES = (
    Rule(
        option="--once",
        why="runs one iteration of each workload in the foreground",
        excludes=("--repeat", "--detach", "--quiet", *LOAD, "--limit"),
    ),
    Rule(option="--verbose", why="shows more of that one iteration", needs=("--once",)),
    Rule(option="--repeat", why="makes several runs", excludes=("--detach", "--web", "--metrics")),
    Rule(option="--web-linger", why="is for the page that it shows", needs=("--web",)),
    Rule(
        option="--repeat",
        why="makes several runs",
        excludes=("--report", "--export"),
        remedy="`osbench-coord report RUN` exports each of them",
    ),
    Rule(
        option="--write",
        why="writes a task and runs nothing",
        needs=("--url", "--scenario"),
        excludes=(
            "--once",
            "--repeat",
            "--detach",
            "--report",
            "--export",
            "--metrics",
            "--archive",
            "--web",
            "--otlp",
            "--traces-from",
        ),
    ),
    Rule(
        option="--detach",
        why="returns before the run is over",
        excludes=("--web",),
        remedy="`osbench-coord web` shows runs that go on",
    ),
)


@click.command(cls=WithWeb, rules=(*RULES, *ADHOC_RULES, *RUN_EXPORT_RULES), epilog=EPILOG)
@click.argument("task", metavar="[TASK]", required=False)
@option_set(ModeOptions, "mode")
@option_set(CourseOptions, "course")
@option_set(TaskOptions, "task_options")
@option_set(Adhoc, "adhoc")
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
    """Run a task file, one request or one scenario, and print the report.

    If TASK is a directory, its files *.yaml, *.yml and *.json are checked, then run in the order of
    their names.

    Without [messaging] redis_url in osbench.conf a private Redis and workers for the cores are
    started for the run, and removed with it.
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
                run_as_asked,
            )

        asked = (mode, course, task_options, adhoc, exports, output)
        sys.exit(run_as_asked(settings, task, *asked, early=early))


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
    """Go on with a run whose coordinator was killed, to its report.

    The work that workers did meanwhile counts, and their load goes on. The run directory, and
    contexts.key of the data directory, must be on this host; the coordinator must be gone. RUN is
    an id, the beginning of one, or "last". If the run is finished, its report is printed and
    exported. Exit codes are as of `run`.

    \b
    Examples:
      osbench-coord resume last
      osbench-coord resume 20260401 --wait-for-workers 60 --report report.html
    """
    from osbench.coordinator.front.cli.commanded_runs import resume_as_asked  # noqa: PLC0415 - for `run`

    sys.exit(resume_as_asked(settings, run, wait_s, exports, output))


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
    """Run the task of a run again, with the same arguments and options.

    This makes a new run. The task is as it was rendered then; plug-ins, data files, the
    configuration and the deployment record of that name are read again. RUN is an id, the beginning
    of one, or "last", which is the default. Exit codes are as of `run`.

    \b
    Examples:
      osbench-coord rerun
      osbench-coord rerun 20260401 --report report.html
    """
    from osbench.coordinator.front.cli.commanded_runs import rerun_as_asked  # noqa: PLC0415 - for `run`

    sys.exit(rerun_as_asked(settings, run, new_id, exports, output))
