"""Redis time on a host's monotonic clock: measured, measured again, within a time."""

from __future__ import annotations

import time

import pytest

from osbench.common.machine import redis_clock
from osbench.common.machine.redis_clock import ClockOffset, RedisClock, measure

#: For as long a request may wait for the processor; clocks of these tests are off by more.
BUSY_S = 30.0


class FarRedis:
    """A client of a Redis whose clock is off, and whose requests or replies take long."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.there_s = self.back_s = 0.0
        self.asked = 0

    def time(self) -> tuple[int, int]:
        self.asked += 1
        time.sleep(self.there_s)
        now_us = time.monotonic_ns() // 1000 + round(self.ahead_s * 1e6)
        time.sleep(self.back_s)
        return divmod(now_us, 1_000_000)


@pytest.fixture
def far() -> FarRedis:
    return FarRedis()


def test_the_offset_is_wrong_by_half_of_what_the_ways_differ_at_most(far):
    far.ahead_s, far.there_s, far.back_s = 100.0, 0.04, 0.0

    found = measure(far, samples=3)

    error_s = found.monotonic_ns / 1e9 - far.ahead_s
    # it was read later than in the middle of the round trip
    assert error_s > 0
    assert abs(error_s) <= found.uncertainty_ns / 1e9 + 1e-6


def test_there_is_always_a_first_sample_and_none_after_the_time(far):
    far.there_s = 0.05

    measure(far, within_s=0.0)
    assert far.asked == 1

    measure(far, samples=4)
    assert far.asked == 5


@pytest.mark.parametrize("set_s", [3600.0, -3600.0])
def test_an_instant_is_as_far_as_it_was_told_if_the_clock_was_set_meanwhile(set_s):
    before = ClockOffset(monotonic_ns=0, uncertainty_ns=1)
    after = ClockOffset(monotonic_ns=round(set_s * 1e9), uncertainty_ns=1)
    since_ns = time.monotonic_ns()
    told_at = before.now_s()

    found = after.told_ns(told_at + 100.0, told_at, since_ns)

    now_ns = time.monotonic_ns()
    assert since_ns + 99.999e9 <= found <= now_ns + 100.001e9


def test_an_instant_that_was_told_a_while_ago_is_where_redis_time_has_it():
    offset = ClockOffset(monotonic_ns=5_000_000_000, uncertainty_ns=1)
    since_ns = time.monotonic_ns() - 20_000_000_000
    told_at = offset.at_s(since_ns + 1_000_000_000)

    found = offset.told_ns(told_at + 2.0, told_at, since_ns)

    assert abs(found - (since_ns + 3_000_000_000)) < 1_000


def test_instants_are_turned_both_ways():
    offset = ClockOffset(monotonic_ns=5_000_000_000, uncertainty_ns=1)

    assert offset.at_s(2_000_000_000) == 7.0
    assert offset.to_monotonic_ns(7.0) == 2_000_000_000


def test_a_clock_of_redis_that_was_set_is_seen_when_the_measurement_is_old(far):
    ours = RedisClock(far)
    start_ns = time.monotonic_ns()
    assert ours.at_s(start_ns) == pytest.approx(start_ns / 1e9, abs=BUSY_S)

    far.ahead_s = 600.0
    ours.refresh()
    assert ours.at_s(start_ns) == pytest.approx(start_ns / 1e9, abs=BUSY_S)

    ours._measured -= redis_clock._FRESH_S + 1
    ours.refresh()
    assert ours.at_s(start_ns) == pytest.approx(start_ns / 1e9 + 600, abs=BUSY_S)
    assert ours.to_monotonic_ns(ours.at_s(start_ns)) == pytest.approx(start_ns, abs=1000)


def test_before_a_load_it_is_measured_whatever_its_age(far):
    ours = RedisClock(far)

    far.ahead_s = -60.0
    ours.measure()

    assert ours.now_s() == pytest.approx(time.monotonic() - 60, abs=BUSY_S)
