"""Interrupts of a run: none is lost before there is a run, and none counts twice."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.web import snapshot
from osbench.coordinator.front.cli.one_run import Interrupts, _interruptible
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.run_views.single_iteration import IterationProgress
from osbench.coordinator.results.storage import control_requests
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    """Of a run with a coordinator: this process."""
    made = RunDirectory.create(str(tmp_path), "run")
    yield made
    made.close()


class OneRun:
    """Counts what reaches it; may be interrupted while it takes an earlier interrupt."""

    def __init__(self, *, again: bool = False) -> None:
        self.level = 0
        self.again = again

    def interrupt(self) -> int:
        self.level += 1
        if self.again:
            self.again = False
            signal.raise_signal(signal.SIGINT)
        return self.level


def test_interrupts_before_the_run_reach_it_once(directory: RunDirectory) -> None:
    interrupts = Interrupts()
    one = OneRun()

    with _interruptible(Progress(quiet=True), interrupts, directory) as relay:
        signal.raise_signal(signal.SIGINT)
        before = one.level
        relay.begin(one)
        begun = one.level
        signal.raise_signal(signal.SIGTERM)

    assert (before, begun, one.level) == (0, 1, 2)
    assert interrupts.count == 2


def test_one_that_comes_while_an_earlier_one_is_passed_on_counts_once(
    directory: RunDirectory,
) -> None:
    one = OneRun(again=True)

    with _interruptible(Progress(quiet=True), Interrupts(), directory) as relay:
        signal.raise_signal(signal.SIGINT)
        relay.begin(one)

    assert one.level == 2


def test_without_an_interrupt_the_run_sees_none(directory: RunDirectory) -> None:
    one = OneRun()

    with _interruptible(Progress(quiet=True), Interrupts(), directory) as relay:
        relay.begin(one)

    assert one.level == 0


def test_all_interrupts_before_the_run_reach_it_and_the_first_says_so(directory, capsys):
    one = OneRun()

    with _interruptible(Progress(quiet=False), Interrupts(), directory) as relay:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        relay.begin(one)

    assert one.level == 2
    assert capsys.readouterr().err.count("stopping: running iterations end") == 1


class Interrupting(io.RawIOBase):
    """Standard error of somebody who presses Ctrl-C while a line is written to it."""

    def __init__(self) -> None:
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if not self.written:
            signal.raise_signal(signal.SIGINT)
        self.written += bytes(data)
        return len(data)


def test_ctrl_c_in_the_middle_of_a_line_of_progress_is_told_behind_it(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, raw = OneRun(), Interrupting()
    stream = io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True)
    monkeypatch.setattr(sys, "stderr", stream)
    progress = Progress(quiet=False)

    with _interruptible(progress, Interrupts(), directory) as relay:
        relay.begin(one)
        progress.say("[   1.0 s] a line")

    assert one.level == 1
    line, *told = raw.written.decode().splitlines()
    assert line == "[   1.0 s] a line"
    assert told[0].startswith("stopping: running iterations end")


@pytest.mark.parametrize("once", [False, True])
def test_whoever_waits_for_a_long_iteration_is_told_which(
    directory: RunDirectory, once: bool
) -> None:
    quiet = Progress(quiet=True)
    progress = IterationProgress(directory, silent=True) if once else quiet

    progress(snapshot(longest="iteration 7 on h:1: 62 s in shop.buy"))

    assert progress.longest == "; longest: iteration 7 on h:1: 62 s in shop.buy"


def test_after_the_run_signals_mean_what_they_meant_before(directory: RunDirectory) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]

    with _interruptible(Progress(quiet=True), Interrupts(), directory):
        assert [signal.getsignal(number) for number in numbers] != before

    assert [signal.getsignal(number) for number in numbers] == before


def test_a_request_to_abort_is_an_interrupt_and_is_answered(directory: RunDirectory) -> None:
    one, interrupts = OneRun(), Interrupts()

    with _interruptible(Progress(quiet=True), interrupts, directory) as relay:
        relay.begin(one)
        said = control_requests.abort(directory)

    assert said == "run run is ending: running iterations end, then it reports"
    assert (one.level, interrupts.count) == (1, 1)


def test_a_request_to_abort_now_stops_at_once_and_another_one_insists(
    directory: RunDirectory,
) -> None:
    one = OneRun()

    with _interruptible(Progress(quiet=True), Interrupts(), directory) as relay:
        first = control_requests.abort(directory, now=True)
        relay.begin(one)
        level = one.level
        control_requests.abort(directory, now=True)

    assert first == "run run is ending: running iterations are abandoned"
    assert (level, one.level) == (2, 3)
