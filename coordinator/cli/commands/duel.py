"""The command `duel`: two tasks take turns, so that what changes meanwhile hits both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.comparison_options import (
    ComparisonOptions,
    exit_code,
    show,
)
from osbench.coordinator.cli.one_run import Interrupts, Wanted, checked_plan
from osbench.coordinator.cli.options.option_rules import RuledCommand
from osbench.coordinator.cli.options.option_table import option, option_set, repeated
from osbench.coordinator.cli.options.shared_options import FleetOptions, quiet_flag
from osbench.coordinator.cli.options.task_options import TaskOptions
from osbench.coordinator.cli.progress_display import Progress
from osbench.coordinator.cli.repeated_runs import compared, run_tagged
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


@dataclass(frozen=True, kw_only=True)
class DuelOptions(FleetOptions):
    """On what two tasks run, and how often."""

    SECTION = "The runs"

    pairs: int = option(
        "--pairs",
        type=click.IntRange(2),
        default=5,
        show_default=True,
        metavar="N",
        help="How often both run.",
    )
    tag: tuple[str, ...] = repeated("--tag", help="Tag of all runs; may be repeated.")
    quiet: bool = quiet_flag("the comparison")


@click.command(cls=RuledCommand)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@option_set(DuelOptions, "duelling")
@option_set(ComparisonOptions, "chosen")
@option_set(TaskOptions, "options")
@with_settings
def duel(
    settings: CommandSettings,
    first: str,
    second: str,
    duelling: DuelOptions,
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
    first_task, second_task = (_wanted(path, duelling, options) for path in (first, second))
    for task in (first_task, second_task):
        # the second is not to fail after the first has run
        checked_plan(settings, task)
    runs = AlternatingRuns(settings, (first_task, second_task), Progress(quiet=duelling.quiet))
    runs.run(duelling.pairs)
    result = runs.result(chosen)
    show(result, chosen)
    sys.exit(INTERRUPTED if runs.interrupted else exit_code(result))


def _wanted(path: str, duelling: DuelOptions, options: TaskOptions) -> Wanted:
    return Wanted(
        source=path,
        options=options,
        deployment=duelling.deployment,
        run_options=RunOptions(
            workers=duelling.workers, wait_s=duelling.wait_for_workers, tags=duelling.tag
        ),
    )
