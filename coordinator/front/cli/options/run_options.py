"""Options of `run` on its mode and its course, and rules between options of `run`."""

from __future__ import annotations

from dataclasses import dataclass

import click

from osbench.coordinator.front.cli.options.adhoc import LOAD
from osbench.coordinator.front.cli.options.option_rules import Rule
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import FleetOptions
from osbench.coordinator.front.cli.options.web_options import OTLP, BackendUrl, ListenAddress


@dataclass(frozen=True, kw_only=True)
class ModeOptions(OptionSet):
    """Options for the way in which a task is run: once, repeatedly, in the background."""

    SECTION = "Mode"

    once: bool = flag(
        "--once",
        help="Run one iteration of each workload; print its requests, output, logs and traceback.",
    )
    verbose: bool = flag("--verbose", help="With --once: print headers, longer bodies, more logs.")
    repeat: int | None = option(
        "--repeat",
        type=click.IntRange(2),
        metavar="N",
        help="Run the task N times, one after the other, and print how much the runs differ.",
    )
    keep_going: bool = flag(
        "--keep-going",
        help="With a directory: continue after a task that fails.",
    )
    detach: bool = flag("--detach", help="Run in the background and print the run's id.")
    write: str | None = option(
        "--write",
        metavar="FILE",
        help="Only save --url or --scenario with its load as a task file; - prints it.",
    )
    #: Id given out by `--detach`, or by the page of `web`.
    run_id: str = option("--run-id", default="", hidden=True)


@dataclass(frozen=True, kw_only=True)
class CourseOptions(FleetOptions):
    """Options for a run: deployment, workers, tags, sources of spans, reasons to end it early."""

    SECTION = "The run"

    tag: tuple[str, ...] = repeated_option(
        "--tag", help="Label of the run, in addition to tags of the task; may be repeated."
    )
    abort_on_sla_failure: bool = flag(
        "--abort-on-sla-failure",
        help="Stop all load as soon as an SLA cannot be met any more; start no further workload.",
    )
    otlp: str | None = option(
        OTLP,
        type=ListenAddress(),
        metavar="[ADDR:PORT]",
        help="Receive spans of services by OTLP, by default at 127.0.0.1:4318. Needs no trace key"
        " and no trace store. Default: [traces] otlp_listen.",
    )
    traces_from: str | None = option(
        "--traces-from",
        type=BackendUrl(),
        metavar="URL",
        help="At the end, query traces from tempo+http://HOST:3200 or jaeger+http://HOST:16686, or"
        " with https. Needs no trace key and no trace store. Default: [traces] query_url.",
    )
    stop_on_error: bool = flag(
        "--stop-on-error",
        help="End the run if the contexts or arguments of a workload fail. Default: continue with"
        " the next workload.",
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
        why="only writes a task",
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
        remedy="`osbench-coord web` shows runs in progress",
    ),
)
