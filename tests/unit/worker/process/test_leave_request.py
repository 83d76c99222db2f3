"""A request to end that comes by a signal, also in the middle of a wait for it."""

from __future__ import annotations

import signal
import threading

import pytest

from osbench.worker.process.leave_request import LeaveRequest


@pytest.fixture
def by_signals():
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    found = LeaveRequest()
    found.on_signals()
    yield found
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_good(by_signals: LeaveRequest, number: signal.Signals) -> None:
    before = by_signals.wait(0.0)

    signal.raise_signal(number)

    assert not before
    assert by_signals.wait(60.0)
    assert by_signals.wait(0.0)


def test_another_thread_ends_the_wait() -> None:
    leave = LeaveRequest()

    threading.Thread(target=leave.ask).start()

    assert leave.wait(60.0)
