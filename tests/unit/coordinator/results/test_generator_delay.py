"""Criteria that fail by the load generator's own delays are disputed; others are not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from helpers.result_rows import block, row
from osbench.common.histogram import Histogram
from osbench.common.outcomes import Outcome
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Failure
from osbench.common.task import Named
from osbench.coordinator.results.generator_delay import GeneratorDelay
from osbench.coordinator.results.workload_statistics import WorkloadStatistics
from osbench.coordinator.sla.evaluator import SlaEvaluator

MS = 1_000_000
S = 1000 * MS
#: From one beat of an event loop to the next, nanoseconds.
BEAT = 5 * MS


def measured(
    seed: int, *, service_ms: float, blocked_ms: float, every_s: float, seconds: int = 20
) -> WorkloadStatistics:
    """100 iterations a second of a service, in loops that are blocked now and then, by chance."""
    chance = random.Random(seed)
    blocks, at = [], 0.0
    while every_s and at < seconds:
        at += chance.expovariate(1 / every_s)
        blocks.append((int(at * S), int(at * S + blocked_ms * MS)))
        at += blocked_ms / 1000

    begins = np.array([begin for begin, _ in blocks] or [1 << 60], np.int64)
    ends = np.array([end for _, end in blocks] or [1 << 60], np.int64)

    def resumed(instant: int) -> int:
        place = int(np.searchsorted(begins, instant, side="right")) - 1
        return max(instant, int(ends[place])) if place >= 0 else instant

    found = WorkloadStatistics(is_open=True, planned_s=float(seconds))
    starts, times = [], []
    for number in range(100 * seconds):
        started = resumed(number * 10 * MS)
        answered = started + int(chance.uniform(0.9, 1.1) * service_ms * MS)
        starts.append(started - number * 10 * MS)
        times.append(resumed(answered) - started)
    found.service.ok.add(np.array(times, np.int64))
    found.response.ok.add(np.array(times, np.int64) + np.array(starts, np.int64))
    found.start_lag.add(np.array(starts, np.int64))
    beats = range(0, seconds * S, BEAT)
    found.add_loop(np.array([resumed(beat) - beat for beat in beats], np.int64), {})
    return found


def judged(found: WorkloadStatistics, name: str = "percentile", **config: Any) -> Verdict:
    evaluator = SlaEvaluator([Named(name=name, config=config)], Plugins())
    (verdict,) = evaluator.judge(found, delay=GeneratorDelay(found))
    return verdict


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("service_ms", "blocked_ms", "every_s", "limit_ms"),
    [(10, 45, 0.2, 30), (10, 45, 0.25, 20), (5, 200, 1.5, 25), (20, 800, 6.0, 40)],
)
def test_a_limit_that_a_blocked_loop_may_have_broken_is_disputed(
    seed: int, service_ms: float, blocked_ms: float, every_s: float, limit_ms: float
) -> None:
    found = measured(seed, service_ms=service_ms, blocked_ms=blocked_ms, every_s=every_s)

    verdict = judged(found, p=90, max_s=limit_ms / 1000, of="response")

    assert verdict.success or verdict.disputed, verdict.detail
    if verdict.disputed:
        assert "; may be the generator's own doing: its processes were late by up to" in (
            verdict.detail
        )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("service_ms", "blocked_ms", "every_s"), [(40, 45, 0), (40, 3, 0.3), (150, 20, 0.5)]
)
def test_a_slow_service_fails_whatever_the_generator_does(
    seed: int, service_ms: float, blocked_ms: float, every_s: float
) -> None:
    found = measured(seed, service_ms=service_ms, blocked_ms=blocked_ms, every_s=every_s)

    for of in ("service", "response"):
        verdict = judged(found, p=90, max_s=0.03, of=of)
        assert (verdict.success, verdict.disputed) == (False, False), verdict.detail


def test_failed_iterations_are_no_delay() -> None:
    found = measured(1, service_ms=10, blocked_ms=45, every_s=0.2)
    found.add(block(row(1, outcome=Outcome.FAILED, ended=1), row(2, ended=1)), worker="w")

    verdict = judged(found, name="failure_rate", max=0)

    assert not verdict.success
    assert not verdict.disputed


def test_failures_for_want_of_the_own_resources_are_disputed() -> None:
    found = WorkloadStatistics()
    lacking = Failure(
        number=1, etype="OSError", message="Too many", traceback="", resource="open files"
    )
    found.add_failures("w", [lacking])
    found.add(
        block(row(1, outcome=Outcome.FAILED, ended=1, failure=1), row(2, ended=1)), worker="w"
    )

    verdict = judged(found, name="failure_rate", max=0)
    assert verdict.disputed
    assert verdict.detail.endswith(
        "may be the generator's own doing: 1 iteration failed because it lacked resources"
    )
    # another one failed by itself
    found.add(block(row(3, outcome=Outcome.FAILED, ended=1)), worker="w")
    assert not judged(found, name="failure_rate", max=0).disputed


def test_the_mean_and_the_longest_are_disputed_too() -> None:
    found = measured(3, service_ms=10, blocked_ms=45, every_s=0.2)

    assert judged(found, p=100, max_s=0.02).disputed
    assert judged(found, p=100, max_s=0.009).disputed is False


def test_of_a_punctual_generator_nothing_is_said() -> None:
    found = measured(4, service_ms=10, blocked_ms=0, every_s=0)

    assert GeneratorDelay(found).statistics_without is None
    assert GeneratorDelay(found).share == 0


def test_the_highest_samples_are_left_out_up_to_a_bound() -> None:
    times = Histogram.of([1000, 2000, 3000, 4000, 9000])

    found = times.without_highest(2, 4500)

    assert (found.count, found.percentile(100), found.percentile(50)) == (3, 9000, 2000)
    assert times.count == 5
    assert times.without_highest(99, 10_000).count == 1
    assert times.count_above(3000) == 2
    assert times.count_above(10**15) == 0
