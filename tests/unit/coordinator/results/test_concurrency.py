"""User-seconds that no worker had: while users are missing, and since a lost worker fell silent."""

from __future__ import annotations

import pytest

from osbench.coordinator.results.concurrency import MissingUsers


def test_missing_users_count_while_there_is_work_for_them():
    missing = MissingUsers()

    missing.count(-0.3, 4, asked=True)
    missing.count(2.0, 3, asked=True)
    missing.count(3.0, -1, asked=True)
    missing.count(5.0, 2, asked=False)
    missing.count(6.0, 2, asked=True)

    assert missing.user_s == pytest.approx(2 * 3 + 1 * 2)


def test_the_users_of_a_lost_worker_are_missing_since_it_fell_silent():
    missing = MissingUsers()

    missing.add_lost(4, 7.0, 10.0)

    assert missing.user_s == pytest.approx(12.0)


def test_nothing_is_missing_of_a_worker_that_fell_silent_after_the_stop():
    missing = MissingUsers()

    missing.add_lost(4, 9.0, 8.0)

    assert missing.user_s == 0.0
