"""Trends of latency at a constant load, and whether they began before the overload."""

from __future__ import annotations

import numpy as np

from osbench.edges.overload.drift import TimedBlock, leads_back, trend_of


def blocks(times_s: list[float], first: float = 0.0) -> list[TimedBlock]:
    return [
        TimedBlock(at_s=first + at, arrivals=100 * (first + at), p50_s=p50_s)
        for at, p50_s in enumerate(times_s)
    ]


def test_noise_is_no_trend() -> None:
    random = np.random.default_rng(5)
    clear = 0
    for _ in range(300):
        trend = trend_of(blocks((0.1 * np.exp(random.normal(0, 0.05, 24))).tolist()))
        assert trend is not None
        clear += trend.grows()

    # fewer than one of 700 by chance
    assert clear <= 3


def test_growth_is_seen_in_noise_and_has_its_factor() -> None:
    random = np.random.default_rng(6)
    times = 0.1 * np.linspace(1, 1.5, 24) * np.exp(random.normal(0, 0.03, 24))

    trend = trend_of(blocks(times.tolist()))

    assert trend is not None and trend.grows() and not trend.falls
    assert 1.35 < trend.factor < 1.65


def test_few_blocks_have_no_trend() -> None:
    assert trend_of(blocks([0.1] * 7)) is None
    assert not leads_back(blocks([0.1]), blocks([0.1, 0.2]))


def test_a_leak_leads_back_to_the_level_before_and_a_growing_queue_does_not() -> None:
    before = blocks([0.100, 0.101, 0.102])
    leak = blocks([0.13 + 0.001 * at for at in range(24)], first=30)
    queue = blocks([3 + 0.1 * at for at in range(24)], first=30)

    assert leads_back(before, leak)
    assert not leads_back(before, queue)
    assert not leads_back(before, blocks([0.2] * 24, first=30))
