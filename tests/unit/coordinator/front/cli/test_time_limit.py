"""A command with `--timeout` ends after it, whatever it waits for."""

from __future__ import annotations

import signal
import threading

import pytest

from osbench.coordinator.front.cli import time_limit
from osbench.coordinator.front.cli.time_limit import TimeOver, ended_after


def test_what_waits_for_ever_ends_with_an_error_that_names_the_option() -> None:
    with pytest.raises(TimeOver, match=r"not done within 0.05 s \(--timeout\)"), ended_after(0.05):
        threading.Event().wait()


def test_the_next_question_has_no_time_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "AGAIN_S", 0.05)
    said: list[str] = []

    with pytest.raises(TimeOver), ended_after(0.05):
        try:
            threading.Event().wait()
        except TimeOver as error:
            said.append(str(error))
        threading.Event().wait()

    assert len(said) == 1


def test_what_is_done_in_time_is_not_disturbed_later() -> None:
    before = signal.getsignal(signal.SIGALRM)

    with ended_after(60.0):
        pass

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
