"""Waiting for a server that is not there yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from osbench.common.errors import StoreError, StoreMissing
from osbench.common.protocol import waiting
from osbench.common.protocol.waiting import wait_until_there


class Clock:
    """A clock that sleeps at once."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    found = Clock()
    monkeypatch.setattr(waiting, "time", found)
    yield found


def absent_until(clock: Clock, at_s: float):
    def look() -> None:
        if clock.now < at_s:
            raise StoreMissing("Redis is not there;")

    return look


def test_a_server_that_comes_is_waited_for_and_told_now_and_then(clock: Clock) -> None:
    said: list[str] = []

    wait_until_there(absent_until(clock, 170.0), said.append)

    assert clock.now == 170.0
    assert said == ["Redis is not there; Waiting for it; Ctrl-C ends this"] * 3


def test_one_that_does_not_come_is_given_up(clock: Clock) -> None:
    said: list[str] = []

    with pytest.raises(StoreMissing, match="is not there"):
        wait_until_there(absent_until(clock, 170.0), said.append, 10.0)

    assert clock.now == 110.0
    assert said == ["Redis is not there; Waiting for it, for 10 s at most; Ctrl-C ends this"]


def test_one_that_is_unfit_is_not_waited_for(clock: Clock) -> None:
    def look() -> None:
        raise StoreError("too old")

    with pytest.raises(StoreError, match="too old"):
        wait_until_there(look, lambda _: None)

    assert clock.now == 100.0


def test_an_interrupt_ends_the_wait(clock: Clock) -> None:
    with pytest.raises(KeyboardInterrupt):
        wait_until_there(
            absent_until(clock, 170.0), lambda _: None, None, lambda: clock.now < 105.0
        )

    assert clock.now == 105.0
