"""The command `duel`: two tasks take turns, so that what changes meanwhile hits both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.coordinator.cli.adhoc import Adhoc
from osbench.coordinator.cli.base import CommandSettings, DurationType, with_settings
from osbench.coordinator.cli.comparison_options import (
    ComparisonOptions,
    comparison_options,
    exit_code,
    show,
)
from osbench.coordinator.cli.one_run import Interrupts, Wanted, checked_plan
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.repeated_runs import compared, run_tagged
from osbench.coordinator.cli.task_options import TaskOptions, task_options
from osbench.coordinator.comparison.compared_run import SOUND, ComparedRun
from osbench.coordinator.comparison.comparing import compare_sides
from osbench.coordinator.comparison.comparison_result import ComparisonResult
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.run.plan import RunOptions, new_run_id


class AlternatingRuns:
    """Runs of two tasks in the order A B, B A, A B: neither of them always comes first."""

    def __init__(
        self, settings: CommandSettings, tasks: tuple[Wanted, Wanted], progress: Progress
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._progress = progress
        self._tag = f"duel-{new_run_id()}"
        #: Ids of the runs of each task, as far as both of a pair have ended.
        self._pairs: list[tuple[str, str]] = []
        self._interrupts = Interrupts()

    def run(self, pairs: int) -> None:
        """Make the runs; an interrupt ends them. Raises OsbenchError where one cannot begin."""
        with self._interrupts.noted():
            for number in range(pairs):
                if self.interrupted:
                    break
                self._progress.say(f"pair {number + 1} of {pairs}")
                self._run_pair(first=number % 2)

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended the runs."""
        return self._interrupts.count > 0

    def _run_pair(self, first: int) -> None:
        ids = ["", ""]
        for side in (first, 1 - first):
            if self.interrupted:
                return
            name = "AB"[side]
            wanted = self._tasks[side]
            self._progress.say(f"{name}: {wanted.source}")
            summary = run_tagged(
                self._settings,
                wanted,
                self._progress,
                self._interrupts,
                self._tag,
                f"{self._tag}-{name}",
            )
            if summary["exit_code"] == INTERRUPTED:
                return
            ids[side] = summary["run_id"]
        self._pairs.append((ids[0], ids[1]))

    def result(self, chosen: ComparisonOptions) -> ComparisonResult:
        """What the pairs say. Raises UsageError."""
        if not self._pairs:
            error = OsbenchError("interrupted before both tasks had run")
            error.exit_code = INTERRUPTED
            raise error
        pairs = [compared(self._settings, pair) for pair in self._pairs]
        kept, left_out = sound_pairs(pairs, anyway=chosen.anyway)
        found = compare_sides(
            Evidence(
                before=[first for first, _ in kept],
                after=[second for _, second in kept],
                in_pairs=True,
            ),
            margin=chosen.margin,
            anyway=chosen.anyway,
            names=(str(self._tasks[0].source), str(self._tasks[1].source)),
        )
        return replace(found, remarks=(*found.remarks, *left_out))


def sound_pairs(
    pairs: Sequence[Sequence[ComparedRun]], *, anyway: bool
) -> tuple[list[tuple[ComparedRun, ComparedRun]], list[str]]:
    """Pairs whose load was the one asked for, and sentences on the others.

    All of them with `anyway`, and where there is no such pair: the comparison says why.
    """
    both = [(first, second) for first, second in pairs]
    kept = [pair for pair in both if all(run.exit_code in SOUND for run in pair)]
    if anyway or not kept:
        return both, []
    return kept, [
        f"The pair {first.run_id} and {second.run_id} is left out: exit codes"
        f" {first.exit_code} and {second.exit_code}"
        for first, second in both
        if (first, second) not in kept
    ]


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--pairs",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    metavar="N",
    help="How often both run.",
)
@click.option("--deployment", metavar="NAME", help="Deployment record; default: the one in use.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Worker processes to use.")
@click.option(
    "--wait-for-workers",
    type=DurationType(),
    metavar="DURATION",
    help="How long to wait for workers.",
)
@click.option("--tag", multiple=True, help="Tag of all runs; may be repeated.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the comparison.")
@comparison_options
@task_options
@with_settings
def duel(  # noqa: PLR0913 - one per option of the command
    settings: CommandSettings,
    first: str,
    second: str,
    pairs: int,
    deployment: str | None,
    workers: int | None,
    wait_for_workers: float | None,
    tag: tuple[str, ...],
    quiet: bool,
    chosen: ComparisonOptions,
    options: TaskOptions,
) -> None:
    """Run two task files in turn and compare them.

    A is before, B after.

    The tasks alternate (A B, B A, A B ...), so that what else changes meanwhile hits both, and
    the differences of the pairs are what is tested. Ctrl-C ends the running iterations and
    compares the pairs made so far. Use the same load in both tasks.

    \b
    Examples:
      osbench-coord duel old.yaml new.yaml --pairs 5
      osbench-coord duel fernet.yaml jws.yaml --pairs 8 --margin 3% --html duel.html

    \b
    Exit codes:
      0 B is not worse, or there is no evidence of it
      1 something is worse with B
      2 bad usage, or the runs cannot be compared
      130 interrupted
    """
    for path in (first, second):
        if not Path(path).is_file():
            raise UsageError(f"there is no task file {path}")
    run_options = RunOptions(workers=workers, wait_s=wait_for_workers, tags=tag)
    tasks = [
        Wanted(
            source=source,
            adhoc=Adhoc(),
            options=options,
            deployment=deployment,
            web=None,
            run_options=run_options,
        )
        for source in (first, second)
    ]
    for task in tasks:
        # the second is not to fail after the first has run
        checked_plan(settings, task)
    runs = AlternatingRuns(settings, (tasks[0], tasks[1]), Progress(quiet=quiet))
    runs.run(pairs)
    result = runs.result(chosen)
    show(result, chosen)
    sys.exit(INTERRUPTED if runs.interrupted else exit_code(result))
