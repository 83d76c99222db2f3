"""Blocks of runs around a change: order, runs without the requested load, failures, interrupts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from osbench.common.errors import OsbenchError
from osbench.coordinator.front.cli.one_run import Wanted
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.model.model import Report
from osbench.edges.history.commands import blocked_runs
from osbench.edges.history.commands.blocked_runs import BlockCommands, BlockedRuns, BlockSizes
from osbench.edges.history.commands.upgrade_commands import ServiceCommand

#: A report of a run by its number from 0.
Reports = Callable[[int], Report]


def report(run: int, *, code: int = 0, failed: int = 0) -> Report:
    """The report of a run of 100 iterations."""
    workload = SimpleNamespace(bounds=(), bad=failed, ran=100)
    made = dataclasses.replace(Report(run_id=f"run{run}", exit_code=code))
    object.__setattr__(made, "workloads", (workload,))
    return made


class Played:
    """Runs that are only counted, with commands that append their name to the same record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, reports: Reports) -> None:
        self.events: list[str] = []
        self._record = folder / "events"
        self._reports = reports
        self.interrupt_at = -1
        monkeypatch.setattr(blocked_runs, "checked_plan", lambda *_: None)
        monkeypatch.setattr(blocked_runs, "run_tagged", self._run)
        commands = (
            ServiceCommand(
                option=f"--{name}",
                command=f"echo {name} >> {self._record}",
                log=folder / f"{name}.log",
                within_s=60,
                spared=name == "change",
            )
            for name in ("before", "change", "after")
        )
        before, change, after = commands
        self.commands = BlockCommands(before=before, change=change, after=after)
        self._made = 0

    def runs(
        self, blocks: int = 3, runs: int = 2, *, anyway: bool = False, **commands: ServiceCommand
    ) -> BlockedRuns:
        """Blocks that are made as soon as `run` is called."""
        return BlockedRuns(
            cast("Any", None),
            cast("Wanted", None),
            Progress(quiet=True),
            dataclasses.replace(self.commands, **commands),
            BlockSizes(blocks=blocks, runs=runs),
            anyway=anyway,
        )

    @property
    def order(self) -> list[str]:
        """Commands and sides of runs, in the order in which they came."""
        return self._record.read_text("utf-8").split()

    def _run(self, settings: Any, wanted: Any, progress: Any, noted: Any, *tags: str) -> Report:
        with self._record.open("a", encoding="utf-8") as file:
            file.write(f"run-{tags[-1].rpartition('-')[2]}\n")
        if self._made == self.interrupt_at:
            noted.note()
        self._made += 1
        return self._reports(self._made - 1)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Reports], Played]:
    return lambda reports: Played(monkeypatch, tmp_path, reports)


def test_each_block_follows_its_command_and_the_change_comes_once_between(play: Any) -> None:
    played = play(report)

    runs = played.runs()
    runs.run()

    side = ["before", "run-before", "run-before"] * 3
    assert played.order == [*side, "change", *(one.replace("before", "after") for one in side)]
    assert (runs.failing_after, runs.lack_of_blocks) == ("", "")


def test_runs_that_the_generator_limited_are_made_again(play: Any) -> None:
    # of the second block one run, of the fifth all
    limited = {2, *range(9, 13)}
    played = play(lambda at: report(at, code=4 if at in limited else 0))

    runs = played.runs()
    runs.run()

    sides = [one for one in played.order if one.startswith("run-")]
    assert sides.count("run-before") == 7
    assert sides.count("run-after") == 8
    assert "in all runs of 1 block of 6, and 3 others are needed" in runs.lack_of_blocks
    assert runs.lack_of_blocks.endswith("use a dedicated machine, or a smaller load")


def test_runs_that_the_generator_limited_count_if_the_user_says_so(play: Any) -> None:
    played = play(lambda at: report(at, code=4))

    runs = played.runs(anyway=True)
    runs.run()

    assert len([one for one in played.order if one.startswith("run-")]) == 12
    assert runs.lack_of_blocks == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([0, 0, 0, 0], [5, 6, 4, 5], "more iterations fail: 0 of 400 before the change, 20 of 400"),
        # one bad block, a service that fails more and more, and one that gets better
        ([0, 0, 0, 0], [5, 6, 0, 5], ""),
        ([0, 2, 4, 6], [8, 10, 12, 14], ""),
        ([5, 6, 4, 5], [0, 0, 0, 0], ""),
        # three blocks a side can be in this order by chance
        ([0, 0, 0], [5, 6, 4], ""),
    ],
)
def test_more_failures_after_the_change_are_worse_if_no_block_says_otherwise(
    play: Any, before: Sequence[int], after: Sequence[int], said: str
) -> None:
    shares = [*before, *after]
    played = play(lambda at: report(at, failed=shares[at]))

    runs = played.runs(blocks=len(before), runs=1)
    runs.run()

    assert runs.failing_after.startswith(said)
    assert bool(runs.failing_after) == bool(said)


def test_criteria_that_only_runs_after_the_change_miss_are_worse(play: Any) -> None:
    played = play(lambda at: report(at, code=int(at >= 3)))
    runs = played.runs(runs=1)
    runs.run()

    assert runs.failing_after == "only runs after the change miss the criteria of the task"


def test_criteria_that_some_run_before_misses_say_nothing_of_the_change(play: Any) -> None:
    played = play(lambda at: report(at, code=int(at >= 2)))
    runs = played.runs(runs=1)
    runs.run()

    assert runs.failing_after == ""


def test_nothing_is_changed_after_an_interrupt_and_no_run_begins(play: Any) -> None:
    played = play(report)
    played.interrupt_at = 1

    runs = played.runs(runs=1)
    runs.run()

    assert played.order == ["before", "run-before", "before", "run-before"]
    assert runs.interrupted
    with pytest.raises(OsbenchError, match=r"^interrupted before both sides") as caught:
        runs.result(cast("Any", SimpleNamespace(margin=None, anyway=False)))
    assert caught.value.exit_code == 130


def test_a_change_that_fails_ends_it_with_the_end_of_its_log(play: Any, tmp_path: Path) -> None:
    played = play(report)
    broken = dataclasses.replace(played.commands.change, command="echo migration 42 failed; exit 7")

    runs = played.runs(runs=1, change=broken)
    with pytest.raises(OsbenchError) as caught:
        runs.run()

    said = str(caught.value)
    assert "--change ended with exit code 7; correct the command" in said
    assert "migration 42 failed" in said
    assert str(tmp_path / "change.log") in said
    assert "run-after" not in played.order
