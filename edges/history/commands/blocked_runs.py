"""Runs of one task in blocks around a change of the service, such as an upgrade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from osbench.common.errors import INTERRUPTED
from osbench.coordinator.formatting import count, duration
from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.one_run import Interrupts, Wanted, checked_plan
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.repeated_runs import run_tagged
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.report.model.model import Report
from osbench.edges.history.commands.alternating_runs import (
    ENOUGH,
    FAILED,
    compared_runs,
    interrupt_error,
)
from osbench.edges.history.commands.comparison_options import ComparisonOptions
from osbench.edges.history.commands.upgrade_commands import ServiceCommand
from osbench.edges.history.comparison.block_shift import steps
from osbench.edges.history.comparison.compared_run import is_sound
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_result import ComparisonResult
from osbench.edges.history.comparison.evidence import Evidence

BEFORE, AFTER = "before", "after"
#: Blocks a side from which shares of failures are judged: 1 of 70 divisions of equal blocks has all
#: greater ones on the later side.
_JUDGED = 4
#: Difference of the shares of failures that counts.
_SHARE = 0.001


@dataclass(frozen=True, kw_only=True)
class BlockSizes:
    """Numbers of blocks of each side, and of runs of each block."""

    blocks: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class BlockCommands:
    """Commands that run before each block before the change, as the change, and before the rest."""

    before: ServiceCommand
    change: ServiceCommand
    after: ServiceCommand


@dataclass
class _Block:
    side: str
    #: Reports of the runs that count, usually all with the requested load.
    sound: list[Report] = field(default_factory=list)
    #: How many runs the load generator limited, or lost iterations.
    unsound: int = 0

    @property
    def failed(self) -> int:
        return sum(one.bad for report in self.sound for one in report.workloads)

    @property
    def ran(self) -> int:
        return sum(one.ran for report in self.sound for one in report.workloads)

    @property
    def failed_share(self) -> float:
        return self.failed / self.ran if self.ran else 0.0


class BlockedRuns:
    """Makes blocks of runs, changes the service, and makes as many blocks again."""

    def __init__(
        self,
        settings: CommandSettings,
        task: Wanted,
        progress: Progress,
        commands: BlockCommands,
        sizes: BlockSizes,
        *,
        anyway: bool = False,
    ) -> None:
        """Check the task, so that a faulty one fails before any command. Raises OsbenchError.

        All runs get a common tag, gate-ID, and the runs of each side another one, gate-ID-before or
        gate-ID-after. `progress` shows runs and messages. `anyway`: runs count whatever their load.
        """
        checked_plan(settings, task)
        self._settings = settings
        self._task = task
        self._progress = progress
        self._commands = commands
        self._sizes = sizes
        self._anyway = anyway
        self._tag = f"gate-{new_run_id()}"
        #: Blocks that have ended, by time.
        self._blocks: list[_Block] = []
        self._change_s = 0.0
        self._interrupts = Interrupts()

    @property
    def tag(self) -> str:
        """The tag of all runs; with "-before" or "-after", the tag of one side."""
        return self._tag

    def run(self) -> None:
        """Make the blocks before, the change, and the blocks after it.

        After an interrupt no further run begins; the block that it ended does not count. Raises
        OsbenchError if a command fails, or a run cannot begin or has no report.
        """
        with self._interrupts.noted():
            for side, command in ((BEFORE, self._commands.before), (AFTER, self._commands.after)):
                if side == AFTER and not self.interrupted:
                    self._change_s = self._commands.change.run(self._interrupts, self._progress)
                for number in range(self._sizes.blocks):
                    if self.interrupted:
                        return
                    command.run(self._interrupts, self._progress)
                    self._run_block(side, number + 1)

    @property
    def interrupted(self) -> bool:
        """Return whether Ctrl-C or SIGTERM came; no further run begins then."""
        return self._interrupts.count > 0

    def _run_block(self, side: str, number: int) -> None:
        """Run the task until enough runs had the requested load, twice as often at most."""
        block = _Block(side)
        most = 2 * self._sizes.runs
        while len(block.sound) < self._sizes.runs and len(block.sound) + block.unsound < most:
            if self.interrupted:
                return
            self._progress.say(
                f"{side} the change: block {number} of {self._sizes.blocks}, run"
                f" {len(block.sound) + 1} of {self._sizes.runs}"
            )
            report = run_tagged(
                self._settings,
                self._task,
                self._progress,
                self._interrupts,
                self._tag,
                f"{self._tag}-{side}",
            )
            if report.exit_code == INTERRUPTED:
                return
            if self._anyway or is_sound(report):
                block.sound.append(report)
            else:
                block.unsound += 1
        self._blocks.append(block)

    def _side(self, side: str) -> list[_Block]:
        return [block for block in self._blocks if block.side == side and block.sound]

    @property
    def lack_of_blocks(self) -> str:
        """Return why the blocks are too few for a verdict, and a remedy; "" if they are enough."""
        if all(len(self._side(side)) >= ENOUGH for side in (BEFORE, AFTER)):
            return ""
        lost = [block for block in self._blocks if not block.sound]
        return (
            f"the load generator was the limit, or iterations were lost, in all runs of"
            f" {count(len(lost), 'block')} of {len(self._blocks)}, and {ENOUGH} others are needed"
            " before and after; use a dedicated machine, or a smaller load"
        )

    @property
    def failing_after(self) -> str:
        """Return how the task fails only after the change, as a message; "" if it does not.

        All runs after it miss criteria of the task and none before; or with four blocks a side,
        each block after it has a greater share of failures than any before, and this share moved
        nowhere else as far.
        """
        before, after = self._side(BEFORE), self._side(AFTER)
        if not before or not after:
            return ""
        codes = [{report.code for one in side for report in one.sound} for side in (before, after)]
        if codes == [{0}, {FAILED}]:
            return "only runs after the change miss the criteria of the task"
        shares = [[one.failed_share for one in side] for side in (before, after)]
        if min(map(len, shares)) < _JUDGED or not _is_risen(*shares):
            return ""
        first, second = (
            f"{sum(one.failed for one in side):,} of {sum(one.ran for one in side):,}"
            for side in (before, after)
        )
        return f"more iterations fail: {first} before the change, {second} after it"

    def result(self, chosen: ComparisonOptions) -> ComparisonResult:
        """Return the comparison of the blocks; `chosen` has margin and `anyway`.

        Raises UsageError if the runs cannot be compared; OsbenchError with exit code 130 if there
        are too few blocks after an interrupt.
        """
        if self.lack_of_blocks and self.interrupted:
            raise interrupt_error("interrupted before both sides had three blocks")
        sides = [
            compared_runs(self._settings, [one.run_id for one in _reports(self._side(side))])
            for side in (BEFORE, AFTER)
        ]
        numbers = {
            report.run_id: number
            for number, block in enumerate(self._blocks)
            for report in block.sound
        }
        found = compare_sides(
            Evidence(before=sides[0], after=sides[1], blocks=numbers),
            margin=chosen.margin,
            anyway=chosen.anyway,
            names=("the service", "the changed service"),
        )
        return replace(found, remarks=(*found.remarks, *self._remarks()))

    def _remarks(self) -> list[str]:
        found = [f"The change took {duration(self._change_s)}"]
        if unsound := sum(block.unsound for block in self._blocks):
            found.append(
                f"Left out: {count(unsound, 'run')} whose load was not the requested one; the tag"
                f" of all runs is {self._tag}"
            )
        return found


def _reports(blocks: Sequence[_Block]) -> list[Report]:
    return [report for block in blocks for report in block.sound]


def _is_risen(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether all later shares are above all earlier ones, by the greatest step of all."""
    if min(after) - max(before) <= _SHARE:
        return False
    others = [abs(step) for step in (*steps(before), *steps(after))]
    return after[0] - before[-1] > max(others)
