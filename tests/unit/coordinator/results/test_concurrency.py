"""User-seconds that no worker had: while users are missing, and since a lost worker fell silent."""

from __future__ import annotations

import pytest

from helpers.heartbeats import heartbeat
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.results.concurrency import Shortfall


def lost(silence_s: float, share: int, *, garbled: bool = False) -> Member:
    return Member(heartbeat(), fenced=True, silence_s=silence_s, lost_share=share, garbled=garbled)


def test_missing_users_count_while_there_is_work_for_them():
    shortfall = Shortfall()

    shortfall.count(-0.3, 4, asked=True)
    shortfall.count(2.0, 3, asked=True)
    shortfall.count(3.0, -1, asked=True)
    shortfall.count(5.0, 2, asked=False)
    shortfall.count(6.0, 2, asked=True)

    assert shortfall.user_s == pytest.approx(2 * 3 + 1 * 2)


def test_the_users_of_a_lost_worker_are_missing_since_it_fell_silent():
    shortfall, gone = Shortfall(), lost(3.0, 4)

    said = shortfall.mourn([gone], 10.0, None)

    assert shortfall.user_s == pytest.approx(12.0)
    assert said == ["worker h:7 fell silent 7 s into the load and was given up 3 s later"]
    assert shortfall.mourn([gone], 11.0, None) == []
    assert shortfall.user_s == pytest.approx(12.0)


def test_nothing_is_missing_after_the_stop():
    shortfall = Shortfall()

    shortfall.mourn([lost(3.0, 4)], 10.0, 8.0)

    assert shortfall.user_s == pytest.approx(4.0)


def test_a_worker_that_was_not_understood_is_told_so():
    (said,) = Shortfall().mourn([lost(0.0, 4, garbled=True)], 10.0, None)

    assert said.startswith("worker h:7 sent results that cannot be read 10 s into the load")
