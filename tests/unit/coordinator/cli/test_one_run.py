"""Interrupts of a run: none is lost before there is a run, and none counts twice."""

from __future__ import annotations

import signal

from osbench.coordinator.cli.one_run import Interrupts, _interruptible
from osbench.coordinator.cli.progress_display import Progress


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


def test_interrupts_before_the_run_reach_it_once() -> None:
    interrupts = Interrupts()
    one = OneRun()

    with _interruptible(Progress(quiet=True), interrupts) as relay:
        signal.raise_signal(signal.SIGINT)
        before = one.level
        relay.begin(one)
        begun = one.level
        signal.raise_signal(signal.SIGTERM)

    assert (before, begun, one.level) == (0, 1, 2)
    assert interrupts.count == 2


def test_one_that_comes_while_an_earlier_one_is_passed_on_counts_once() -> None:
    one = OneRun(again=True)

    with _interruptible(Progress(quiet=True), Interrupts()) as relay:
        signal.raise_signal(signal.SIGINT)
        relay.begin(one)

    assert one.level == 2


def test_without_an_interrupt_the_run_sees_none() -> None:
    one = OneRun()

    with _interruptible(Progress(quiet=True), Interrupts()) as relay:
        relay.begin(one)

    assert one.level == 0


def test_all_interrupts_before_the_run_reach_it_and_the_first_says_so(capsys):
    one = OneRun()

    with _interruptible(Progress(quiet=False), Interrupts()) as relay:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        relay.begin(one)

    assert one.level == 2
    assert capsys.readouterr().err.count("stopping: running iterations end") == 1


def test_after_the_run_signals_mean_what_they_meant_before() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]

    with _interruptible(Progress(quiet=True), Interrupts()):
        assert [signal.getsignal(number) for number in numbers] != before

    assert [signal.getsignal(number) for number in numbers] == before
