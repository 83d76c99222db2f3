"""Drills of services that chance has made: the end of the fault is found, and no other is told."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from helpers.planted_drills import NS, Drill, planted, rows, stopped_queue
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Failure
from osbench.common.task import Named
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.drill_figures import DrillFigures
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

KINDS = ("errors", "slowness", "both", "steps")
#: Seconds from the true end of a fault within which a recovery is right.
NEAR_S = 0.5


def is_right(found: DrillFigures, drill: Drill) -> bool:
    if found.recovery_s is None or not drill.lasts_s:
        return found.recovery_s == drill.lasts_s
    return abs(found.recovery_s - drill.lasts_s) <= NEAR_S


def generator_pauses(random: np.random.Generator, drill: Drill) -> tuple[tuple[float, float], ...]:
    """Times in which the generator did nothing: two before the fault, two after its end."""
    calm_s = drill.fault_s + drill.lasts_s + 1.5
    begins = (
        *random.uniform(1, drill.fault_s - 1, 2),
        *random.uniform(calm_s, float(drill.due[-1]) - 3, 2),
    )
    return tuple(sorted((at, at + random.uniform(0.3, 2)) for at in begins))


def test_the_end_of_planted_faults_is_found() -> None:
    wrong = []
    for seed in range(20):
        drill = planted(np.random.default_rng(seed), KINDS[seed % len(KINDS)])
        found = drill.statistics().figures()
        if not is_right(found, drill):
            wrong.append((seed, drill.told, found.recovery_s))

    assert len(wrong) <= 2, wrong


def test_the_end_of_a_backlog_is_within_the_interval() -> None:
    wrong = []
    for seed in range(8):
        drill = stopped_queue(np.random.default_rng(seed))
        found = drill.statistics().figures()
        if not is_right(found, drill):
            wrong.append((seed, drill.told, drill.lasts_s, found.recovery_s))
            continue
        low_s, high_s = found.recovery_ci or (None, None)
        if low_s is None or high_s is None or not low_s <= drill.lasts_s <= high_s:
            wrong.append((seed, drill.told, drill.lasts_s, low_s, high_s))

    assert len(wrong) <= 1, wrong


def test_nothing_lasts_in_loads_without_a_fault() -> None:
    for seed in range(100, 120):
        drill = planted(np.random.default_rng(seed), "nothing")
        found = drill.statistics().figures()

        assert (found.recovery_s, found.generator) == (0, ""), (seed, drill.told)


def test_a_late_generator_is_not_told_as_the_service() -> None:
    wrong, told = [], 0
    for seed in range(200, 220):
        random = np.random.default_rng(seed)
        drill = planted(random, KINDS[seed % len(KINDS)])
        made = drill.statistics(generator_pauses(random, drill))
        measured, without = made.figures(), made.figures_without_delays()
        told += bool(measured.generator)
        said = is_right(measured, drill) or "may be the generator's own doing" in measured.generator
        if not is_right(without, drill) or not said:
            wrong.append((seed, drill.told, measured.recovery_s, without.recovery_s))

    assert len(wrong) <= 2, wrong
    # it was late long after the fault, and that was seen
    assert told >= 10


def test_a_late_generator_makes_no_outage() -> None:
    wrong = []
    for seed in range(300, 320):
        random = np.random.default_rng(seed)
        drill = planted(random, "nothing")
        made = drill.statistics(generator_pauses(random, drill))
        if made.figures_without_delays().recovery_s != 0:
            wrong.append((seed, drill.told, made.figures()))

    assert len(wrong) <= 1, wrong


def steady(*, slow_s: float = 0.0, apart_s: float = 1 / 60) -> Drill:
    """The case of the issue: 15 ms, and 60 ms for some seconds from 9 s on."""
    due = np.arange(0, 20, apart_s)
    struck = (due >= 9) & (due < 9 + slow_s)
    return Drill(
        due=due,
        took=np.where(struck, 0.06, 0.015) + 0.002 * (np.arange(len(due)) % 3),
        bad=due < 0,
        fault_s=9.0,
        lasts_s=slow_s,
        told="",
    )


def test_one_bad_moment_before_does_not_hide_slowness() -> None:
    drill = steady(slow_s=4.97)
    moment = (drill.due > 4) & (drill.due < 4.3)
    noisy = dataclasses.replace(drill, took=np.where(moment, 0.471, drill.took))

    found = noisy.statistics().figures()

    assert is_right(found, drill)
    middle, high = found.limits
    assert (middle.percent, high.percent) == (50, 90)
    assert middle.before_s < middle.limit_s < 0.03
    assert high.before_s < high.limit_s < 0.06


def test_noise_before_widens_the_limits() -> None:
    drill = steady()
    random = np.random.default_rng(1)
    noisy = dataclasses.replace(
        drill, took=drill.took * np.repeat(random.uniform(1, 3, 100), 12)[: len(drill.due)]
    )

    calm, wide = (one.statistics().figures().limits for one in (drill, noisy))

    for narrow, limit in zip(calm, wide, strict=True):
        assert limit.limit_s / limit.before_s > narrow.limit_s / narrow.before_s


def judged(statistics: WorkloadStatistics, **config: object) -> Verdict:
    evaluator = SlaEvaluator([Named(name="drill", config=config)], Plugins())
    (verdict,) = evaluator.judge(statistics, delay=GeneratorDelay(statistics))
    return verdict


def test_a_recovery_that_the_generator_delayed_is_disputed() -> None:
    drill = steady(slow_s=2.0)
    late = WorkloadStatistics(drill=drill.statistics(pauses=((16.0, 17.0),)))
    punctual = WorkloadStatistics(drill=drill.statistics())

    assert judged(late, recovery_s={"max": 3}).disputed
    assert not judged(punctual, recovery_s={"max": 1}).disputed
    # the service itself took longer
    verdict = judged(late, recovery_s={"max": 1})
    assert (verdict.success, verdict.disputed) == (False, False)
    assert judged(late, recovery_s={"max": 9}).success


def test_failures_for_want_of_the_generator_s_resources_are_disputed() -> None:
    drill = DrillStatistics({"fault": "stop"})
    statistics = WorkloadStatistics(drill=drill)
    failure = Failure(
        number=1, etype="OSError", message="Too many", traceback="", resource="open files"
    )
    statistics.add_failures("w", [failure])
    for begin, end in ((0, 10), (10, 20)):
        due = np.arange(begin, end, 0.02)
        bad = (due >= 12) & (due < 13)
        columns = rows(due, due, due + 0.01, bad)
        statistics.add(dataclasses.replace(columns, failure=bad.astype(np.uint32)), worker="w")
        drill.begin("fault", 10.0)
        drill.end_hook("fault", "")

    verdict = judged(statistics, failed={"max": 0}, recovery_s={"max": 1})

    assert (verdict.success, verdict.disputed) == (False, True), verdict.detail
    found = drill.figures()
    assert (found.bad, sum(phase.failed for phase in found.phases)) == (50, 50)
    assert found.generator.endswith(
        "50 iterations did not succeed because the generator lacked resources or time to start them"
    )


def test_lateness_is_known_for_each_second() -> None:
    made = steady().statistics(pauses=((4.0, 5.0),))

    late, lag_ns = made._lateness.by_bin(0.0, 0.25, 80)

    assert late[17] > 0.5
    assert lag_ns[17] == pytest.approx(NS, rel=0.1)
    assert not late[24:].any()
    assert not late[:10].any()
