"""Waiting for a server that is not there yet."""

from __future__ import annotations

import pytest

from helpers.virtual_time import VirtualTime
from osbench.common.errors import StoreError, StoreMissing
from osbench.common.protocol.waiting import wait_until_there


def absent_until(virtual_time: VirtualTime, at_s: float):
    def look() -> None:
        if virtual_time.now_s < at_s:
            raise StoreMissing("Redis is not there;")

    return look


def test_a_server_that_comes_is_waited_for_and_told_now_and_then(virtual_time: VirtualTime) -> None:
    said: list[str] = []

    wait_until_there(absent_until(virtual_time, 1070.0), said.append)

    assert virtual_time.now_s == 1070.0
    assert said == ["Redis is not there; Waiting for it; Ctrl-C ends this"] * 3


def test_one_that_does_not_come_is_given_up(virtual_time: VirtualTime) -> None:
    said: list[str] = []

    with pytest.raises(StoreMissing, match="is not there"):
        wait_until_there(absent_until(virtual_time, 1070.0), said.append, 10.0)

    assert virtual_time.now_s == 1010.0
    assert said == ["Redis is not there; Waiting for it, for 10 s at most; Ctrl-C ends this"]


def test_one_that_is_unfit_is_not_waited_for(virtual_time: VirtualTime) -> None:
    def look() -> None:
        raise StoreError("too old")

    with pytest.raises(StoreError, match="too old"):
        wait_until_there(look, lambda _: None)

    assert virtual_time.now_s == 1000.0


def test_an_interrupt_ends_the_wait(virtual_time: VirtualTime) -> None:
    with pytest.raises(KeyboardInterrupt):
        wait_until_there(
            absent_until(virtual_time, 1070.0),
            lambda _: None,
            None,
            lambda: virtual_time.now_s < 1005.0,
        )

    assert virtual_time.now_s == 1005.0
