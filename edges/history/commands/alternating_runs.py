"""Runs of two tasks that take turns, so that changes of their surroundings hit both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.one_run import Interrupts, Wanted, checked_plan
from osbench.coordinator.front.cli.options.option_table import option, repeated_option
from osbench.coordinator.front.cli.options.shared_options import FleetOptions, quiet_flag
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.repeated_runs import run_tagged
from osbench.coordinator.load.run.plan import RunOptions, new_run_id
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.history.commands.comparison_options import ComparisonOptions
from osbench.edges.history.comparison.compared_run import ComparedRun, read_compared_run
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_result import ComparisonResult
from osbench.edges.history.comparison.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class PairOptions(FleetOptions):
    """Options of `duel` and `gate`, whose two tasks take turns: workers, number of pairs, tags."""

    SECTION = "The runs"

    pairs: int = option(
        "--pairs",
        type=click.IntRange(2),
        default=5,
        show_default=True,
        metavar="N",
        help="How often both run.",
    )
    tag: tuple[str, ...] = repeated_option("--tag", help="Tag of all runs; may be repeated.")
    quiet: bool = quiet_flag("the comparison")

    def wanted(self, path: str, options: TaskOptions) -> Wanted:
        """Return the request for runs of the task file at `path`, which is read with `options`.

        Deployment, workers and tags are of this set of options.
        """
        return Wanted(
            source=path,
            options=options,
            deployment=self.deployment,
            run_options=RunOptions(
                workers=self.workers,
                join=self.join,
                wait_s=self.wait_for_workers,
                tags=self.tag,
            ),
        )


#: Pairs that a verdict needs at least, unless fewer were asked for.
ENOUGH = 3
#: Exit code of a run whose criteria are not met.
FAILED = 1


class AlternatingRuns:
    """Makes runs of two tasks in turn, A B, B A, A B: each comes first in every other pair."""

    def __init__(
        self, settings: CommandSettings, tasks: tuple[Wanted, Wanted], progress: Progress
    ) -> None:
        """Check both tasks, so that a faulty one fails before any run. Raises OsbenchError.

        All runs get a common tag, duel-ID, and the runs of each task another one, duel-ID-A or
        duel-ID-B. `progress` shows runs and messages.
        """
        for task in tasks:
            checked_plan(settings, task)
        self._settings = settings
        self._tasks = tasks
        self._progress = progress
        self._tag = f"duel-{new_run_id()}"
        #: Ids of the runs of each task, as far as both of a pair have ended; and their exit codes.
        self._pairs: list[tuple[str, str]] = []
        self._codes: list[tuple[int, int]] = []
        #: Of each pair, whether the load generator limited one of its runs.
        self._limited: list[bool] = []
        self._interrupts = Interrupts()

    def run(self, pairs: int) -> None:
        """Make up to `2 * pairs` pairs of runs, until the generator did not limit `pairs` of them.

        After an interrupt no further run begins. The interrupted run lets its iterations end; its
        pair does not count. Raises OsbenchError if a run cannot begin or has no report.
        """
        with self._interrupts.noted():
            for number in range(2 * pairs):
                made, limited = len(self._limited), sum(self._limited)
                if self.interrupted or made - limited >= pairs:
                    break
                why = f", {limited} made again: the generator was the limit" if limited else ""
                self._progress.say(f"pair {made - limited + 1} of {pairs}{why}")
                self._run_pair(first=number % 2)

    @property
    def interrupted(self) -> bool:
        """Return whether Ctrl-C or SIGTERM came during the runs; no further run begins then."""
        return self._interrupts.count > 0

    def _run_pair(self, first: int) -> None:
        ids, codes = ["", ""], [0, 0]
        limited = []
        for side in (first, 1 - first):
            if self.interrupted:
                return
            name = "AB"[side]
            wanted = self._tasks[side]
            self._progress.say(f"{name}: {wanted.source}")
            report = run_tagged(
                self._settings,
                wanted,
                self._progress,
                self._interrupts,
                self._tag,
                f"{self._tag}-{name}",
            )
            if report.exit_code == INTERRUPTED:
                return
            ids[side], codes[side] = report.run_id, report.code
            limited.append(report.is_limited)
        self._pairs.append((ids[0], ids[1]))
        self._codes.append((codes[0], codes[1]))
        self._limited.append(any(limited))

    def lack_of_pairs(self, pairs: int) -> str:
        """Return why the pairs are too few for a verdict, and a remedy; "" if they are enough.

        `ENOUGH` pairs that the load generator did not limit are needed; `pairs`, the number asked
        for, if that is less. "" also after an interrupt, or if it limited none.
        """
        made, limited, needed = len(self._limited), sum(self._limited), min(pairs, ENOUGH)
        if self.interrupted or not limited or made - limited >= needed:
            return ""
        return (
            f"the load generator was the limit in {limited} of {count(made, 'pair')}, and"
            f" {needed} others are needed; use a dedicated machine, or a smaller load"
        )

    @property
    def only_second_fails(self) -> bool:
        """Return whether all runs of the second task, and none of the first, failed their criteria.

        Runs of complete pairs that the generator did not limit count, by exit codes: 1 and 0. False
        if there is no such pair.
        """
        codes = [
            one for one, limited in zip(self._codes, self._limited, strict=True) if not limited
        ]
        return bool(codes) and all(one == (0, FAILED) for one in codes)

    def result(self, chosen: ComparisonOptions, names: tuple[str, str]) -> ComparisonResult:
        """Return the comparison of the pairs of runs that had the requested load.

        `chosen` has margin and `anyway`, which keeps all pairs; `names` the names of the two sides
        in the result. Raises UsageError if the runs cannot be compared; OsbenchError with
        exit code 130 if this is after an interrupt, or if there is no pair.
        """
        if not self._pairs:
            raise interrupt_error("interrupted before both tasks had run")
        try:
            return self._compared(chosen, names)
        except UsageError as error:
            if self.interrupted:
                raise interrupt_error(f"interrupted; {error}") from None
            raise

    def _compared(self, chosen: ComparisonOptions, names: tuple[str, str]) -> ComparisonResult:
        pairs = [compared_runs(self._settings, pair) for pair in self._pairs]
        kept, left_out = sound_pairs(pairs, anyway=chosen.anyway)
        found = compare_sides(
            Evidence(
                before=[first for first, _ in kept],
                after=[second for _, second in kept],
                in_pairs=True,
            ),
            margin=chosen.margin,
            anyway=chosen.anyway,
            names=names,
        )
        return replace(found, remarks=(*found.remarks, *left_out))


def compared_runs(settings: CommandSettings, run_ids: Sequence[str]) -> list[ComparedRun]:
    """Return the runs with these ids, in order, read for a comparison.

    Raises UsageError, DamagedRun.
    """
    data_dir = str(settings.conf.data_dir)
    return [read_compared_run(RunDirectory.find(data_dir, run_id)) for run_id in run_ids]


def interrupt_error(message: str) -> OsbenchError:
    """Return an error whose exit code is the exit code of interrupted commands."""
    error = OsbenchError(message)
    error.exit_code = INTERRUPTED
    return error


def sound_pairs(
    pairs: Sequence[Sequence[ComparedRun]], *, anyway: bool
) -> tuple[list[tuple[ComparedRun, ComparedRun]], list[str]]:
    """Return the pairs of runs with the requested load, and a message on each other pair.

    If there is no such pair, or with `anyway`, all pairs and no messages.
    """
    both = [(first, second) for first, second in pairs]
    kept = [pair for pair in both if all(run.is_sound for run in pair)]
    if anyway or not kept:
        return both, []
    return kept, [
        f"The pair {first.run_id} and {second.run_id} is left out: exit codes"
        f" {first.exit_code} and {second.exit_code}"
        for first, second in both
        if (first, second) not in kept
    ]
