"""Criteria that fail by the load generator's own delays are disputed; others are not."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from helpers.result_rows import block, row
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Failure
from osbench.common.task import Named
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay, rows_without
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

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


@pytest.mark.parametrize(
    ("name", "config", "slow"),
    [
        ("percentile", {"p": 90, "max_s": 0.03, "over_s": 5}, 12),
        ("outliers", {"max": 2, "min_iterations": 30}, 2),
    ],
)
@pytest.mark.parametrize(("by_generator", "seed"), [(True, 5), (True, 6), (False, 7), (False, 8)])
def test_criteria_that_count_rows_are_disputed_too(
    name: str, config: dict[str, Any], slow: int, by_generator: bool, seed: int
) -> None:
    """Of 100 iterations `slow` take 45 ms longer: by blocks of the generator, or by the service."""
    chance = random.Random(seed)
    evaluator = SlaEvaluator([Named(name=name, config=config)], Plugins())
    found = WorkloadStatistics(is_open=True, planned_s=20.0)
    for second in range(20):
        held = set(chance.sample(range(1, 100), slow))
        rows = [
            row(
                100 * second + number,
                due=1000 * second + 10 * number,
                started=1000 * second + 10 * number,
                ended=1000 * second + 10 * number + (55 if number in held else 10),
            )
            for number in range(100)
        ]
        columns = block(*rows)
        late = [45 * MS if by_generator else 0] * (2 * slow)
        lags = np.array([0] * (200 - len(late)) + late, np.int64)
        found.add(columns, worker="w")
        found.add_loop(lags, {})
        evaluator.add(columns, rows_without(columns, lags))

    (verdict,) = evaluator.judge(found, delay=GeneratorDelay(found))

    assert (verdict.success, verdict.disputed) == (False, by_generator), verdict.detail


def test_rows_that_lacked_resources_are_in_no_window() -> None:
    evaluator = SlaEvaluator(
        [Named(name="failure_rate", config={"max": 0, "over_s": 5})], Plugins()
    )
    found = WorkloadStatistics()
    lacking = Failure(
        number=1, etype="OSError", message="Too many", traceback="", resource="open files"
    )
    found.add_failures("w", [lacking])
    columns = block(row(1, outcome=Outcome.FAILED, ended=1, failure=1), row(2, ended=1))
    found.add(columns, worker="w")
    which = found.errors.are_lacking("w", columns.failure)
    evaluator.add(columns, rows_without(columns, np.zeros(9, np.int64), which))

    assert evaluator.judge(found, delay=GeneratorDelay(found))[0].disputed
    # an iteration that failed by itself
    alone = block(row(3, outcome=Outcome.FAILED, ended=1))
    found.add(alone, worker="w")
    evaluator.add(alone)
    assert not evaluator.judge(found, delay=GeneratorDelay(found))[0].disputed


def test_the_longest_rows_are_shorter_by_the_delays_that_they_may_have_met() -> None:
    lags_ms = [0] * 60 + list(range(3, 43))
    lengths_ms = [3000 - 100 * place for place in range(20)]
    columns = block(*(row(1 + place, ended=ms) for place, ms in enumerate(lengths_ms)))

    found = rows_without(columns, np.array(lags_ms) * 10**6)

    # 0.784 of them may have met one of 40 late wake-ups at one of three points
    for place in range(16):
        part = (place + 1) / 20
        met = (part / 3, math.sqrt(part / 3), part ** (1 / 3))
        delay_ms = sum(lags_ms[99 - math.floor(share * 100)] for share in met)
        least_ms = max(lengths_ms[place] - delay_ms, min(lengths_ms[place], 2050))
        assert found.ended[place] / 1e6 == pytest.approx(least_ms, abs=delay_ms / 1000), place
    assert (found.ended[16:] == columns.ended[16:]).all()


def test_late_starts_are_the_generators_while_users_are_free() -> None:
    starts = [(10 * number, 10 * number + 30 * (number % 5 == 0)) for number in range(200)]
    rows = [
        row(number, due=due, started=started, ended=started + 10)
        for number, (due, started) in enumerate(starts)
    ]
    found = WorkloadStatistics(is_open=True, planned_s=2.0)
    found.add(block(*rows), worker="w")

    verdict = judged(found, p=90, max_s=0.02, of="response")
    assert verdict.disputed
    assert verdict.detail.endswith("own doing: arrivals started up to 30.0 ms late")
    # all of its users were busy
    found.add(block(row(200, outcome=Outcome.DROPPED_CAPACITY)), worker="w")
    assert not judged(found, p=90, max_s=0.02, of="response").disputed


def test_of_a_punctual_generator_nothing_is_said() -> None:
    found = measured(4, service_ms=10, blocked_ms=0, every_s=0)

    assert GeneratorDelay(found).statistics_without is None
    assert GeneratorDelay(found).share == 0


def test_the_highest_samples_are_replaced() -> None:
    times = Histogram.of([1000, 2000, 3000, 4000, 9000])

    found = times.with_highest(np.array([1500, 2500]), np.array([2, 1]))

    assert (found.count, found.max) == (5, 2501)
    assert found.at_ranks(range(1, 6)) == [1000, 1500, 1500, 2000, 2501]
    assert times.max == 9000
    none = np.zeros(0, np.int64)
    assert times.with_highest(none, none).at_ranks([1, 5]) == times.at_ranks([1, 5])
    # the maximum was longer before
    assert found.copy() == found
    assert times.count_above(3000) == 2
    assert times.count_above(10**15) == 0
