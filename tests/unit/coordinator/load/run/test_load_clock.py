"""Seconds since the start of a load: they do not change if the clock of Redis is set."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.fixed_clock import FixedClock
from osbench.coordinator.load.run import load_clock
from osbench.coordinator.load.run.load_clock import LEAD_S, LoadClock, lead_s, local_lead_s
from osbench.coordinator.results.accounting.accounts import Accounts


class SetClock(FixedClock):
    """A clock of Redis that somebody sets, on a host whose monotonic clock goes on."""

    ahead_s = 0.0

    def to_monotonic_ns(self, at_s: float) -> int:
        """Less what Redis is ahead by."""
        return super().to_monotonic_ns(at_s - self.ahead_s)

    def at_s(self, monotonic_ns: int) -> float:
        """By the clock as it is now."""
        return super().at_s(monotonic_ns) + self.ahead_s


def test_the_time_of_a_load_goes_on_if_the_clock_of_redis_is_set() -> None:
    redis: Any = SetClock(at=100.0)
    clock = LoadClock(redis, Accounts())
    clock.begin(3, 90.0)

    redis.ahead_s = 3600.0

    assert clock.elapsed_s(3) == pytest.approx(10.0)
    assert clock.t0_at(3) == pytest.approx(3690.0)


def test_a_load_that_has_no_start_is_about_to_begin() -> None:
    clock: Any = FixedClock(at=100.0)

    assert not LoadClock(clock, Accounts()).begun(0)
    assert LoadClock(clock, Accounts()).elapsed_s(0) == -LEAD_S


def resumed(redis: Any, note: dict[str, Any]) -> LoadClock:
    """The clock of another coordinator, after a load that began at 90 s."""
    accounts = Accounts()
    accounts.apply({"do": "start", "workload": 0, "t0_at": 90.0, **note})
    return LoadClock(redis, accounts)


def test_on_the_same_host_the_start_is_found_whatever_was_done_to_the_clock_of_redis() -> None:
    redis: Any = SetClock(at=100.0)
    first = LoadClock(redis, Accounts())
    first.begin(0, 90.0)
    second = resumed(redis, first.note(0))

    redis.ahead_s = -3600.0
    second.restore(0, 90.0)

    assert second.elapsed_s(0) == pytest.approx(10.0)


@pytest.mark.parametrize("note", [{}, {"boot": "another", "t0_ns": 5}, {"boot": "", "t0_ns": 5}])
def test_elsewhere_it_is_found_by_the_clock_of_redis(note: dict[str, Any]) -> None:
    redis: Any = SetClock(at=100.0)
    clock = resumed(redis, note)

    clock.restore(0, 90.0)

    assert clock.elapsed_s(0) == pytest.approx(10.0)


def test_a_load_that_has_begun_did_so_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    redis: Any = SetClock(at=100.0)
    monkeypatch.setattr(load_clock.time, "monotonic_ns", lambda: 100 * 10**9)
    clock = resumed(redis, {})
    redis.ahead_s = -3600.0

    clock.restore(0, 90.0)

    assert clock.elapsed_s(0) == pytest.approx(0.0)


def test_a_system_that_names_no_boots_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(load_clock, "_BOOT_ID", tmp_path / "missing")

    assert load_clock.boot_id() == ""


@pytest.mark.parametrize(
    ("users", "shared_s", "local_s"), [(1, 0.3, 0.0205), (200, 0.3, 0.12), (5_000, 0.3, 0.3)]
)
def test_local_mode_begins_sooner_by_the_users_that_start(
    users: int, shared_s: float, local_s: float
) -> None:
    assert lead_s(users) == shared_s
    assert local_lead_s(users) == pytest.approx(local_s)
