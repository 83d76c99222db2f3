"""The criterion `good`: which iterations are good, its exact interval, and when it is certain."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np
import pytest

from helpers.examples import examples
from helpers.result_rows import block, row
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import Columns
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay, rows_without
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.task.taskfile import checked_task
from osbench.edges.capacity.good_counts import BINS, BITS, GoodCounts, exact_interval
from osbench.edges.capacity.goodput import Goodput

QUICK = [{"p": "response", "max": 0.1}]
NAMES = ("buy", "look")


def counts(columns: Columns, of: Any, least: Any = 50) -> tuple[int, int]:
    """Good iterations, and all that count."""
    made = Goodput({"min": least, "of": of})
    made.add(columns)
    return made._counts.good, made._counts.every


def checks(number: int, **made: list[int]) -> tuple[Any, ...]:
    """An iteration of 10 ms with soft checks: how often each passed and failed."""
    packed = msgpack.packb({"kind": "checks", "item": made})
    return (*row(number, ended=10)[:8], (b"", [packed], b""))


def test_an_iteration_is_good_if_it_meets_all_limits_at_once():
    rows = block(
        row(1, due=0, started=0, ended=90),
        row(2, due=0, started=80, ended=160),
        row(3, due=0, started=0, ended=250, idle=200),
    )

    assert counts(rows, QUICK) == (2, 3)
    assert counts(rows, [{"p": "service", "max": 0.1}]) == (3, 3)
    assert counts(rows, [*QUICK, {"p": "service", "max": 0.05}]) == (1, 3)


def test_failed_timed_out_and_unanswered_iterations_are_not_good():
    ended = [row(number, outcome=Outcome(number), ended=1) for number in range(1, 6)]

    assert counts(block(*ended), QUICK) == (1, 5)


def test_arrivals_that_the_generator_dropped_are_left_out_and_named():
    late = [row(number, outcome=Outcome(number), due=9, ended=9) for number in range(6, 9)]
    made = Goodput({"min": 90, "of": QUICK})
    made.add(block(row(1, ended=1), *late))

    verdict = made.check(WorkloadStatistics())

    assert verdict.success
    assert "100 % of 1 iteration" in verdict.detail
    assert "3 arrivals that the generator dropped left out" in verdict.detail


def test_every_call_of_an_action_has_to_be_quick_and_there_has_to_be_one():
    rows = block(
        row(1, ended=90, actions=(("buy", -1, 0, 20, 0), ("buy", -1, 30, 60, 0)), names=NAMES),
        row(2, ended=90, actions=(("buy", -1, 0, 20, 0), ("buy", -1, 30, 90, 0)), names=NAMES),
        row(3, ended=90, actions=(("look", -1, 0, 20, 0),), names=NAMES),
        row(4, ended=90, actions=(("buy", -1, 0, 20, 1),), names=NAMES),
        # left open, it lasted until the end
        row(5, ended=90, actions=(("buy", -1, 10, -1, 0),), names=NAMES),
        names=NAMES,
    )

    assert counts(rows, [{"action": "buy", "max": 0.05}]) == (1, 5)
    assert counts(block(row(1, ended=9)), [{"action": "buy", "max": 0.05}]) == (0, 1)


def test_a_check_has_to_pass_each_time_it_is_made_and_to_be_made():
    rows = block(
        checks(1, total=[2, 0], other=[0, 1]),
        checks(2, total=[1, 1]),
        checks(3, other=[1, 0]),
        row(4, ended=9),
    )

    assert counts(rows, [{"check": "total"}]) == (1, 4)
    assert counts(rows, [{"check": "total"}, {"p": "response", "max": 0.005}]) == (0, 4)


def test_names_that_no_iteration_had_are_said_with_those_it_had():
    made = Goodput({"min": 90, "of": [{"check": "totl"}, {"action": "by", "max": 1}]})
    made.add(block(checks(1, total=[1, 0])))
    made.add(block(row(2, ended=9, actions=(("buy", -1, 0, 2, 0),), names=NAMES), names=NAMES))

    verdict = made.check(WorkloadStatistics())

    assert not verdict.success
    assert "no iteration made the check totl (made: total)" in verdict.detail
    assert "buy" in verdict.detail


@pytest.mark.parametrize(
    ("least", "of_100", "success"),
    [
        ("99 %", 99, True),
        ("99.1%", 99, False),
        (99, 99, True),
        (99.01, 99, False),
        (100, 100, True),
    ],
)
def test_the_share_has_to_be_the_percentage_as_it_is_written(least, of_100, success):
    made = Goodput({"min": least, "of": QUICK})
    made.add(
        block(*[row(number, ended=1 if number <= of_100 else 500) for number in range(1, 101)])
    )

    assert made.check(WorkloadStatistics()).success is success


def test_without_iterations_it_fails():
    assert not Goodput({"min": 90, "of": QUICK}).check(WorkloadStatistics()).success


def test_a_share_that_is_not_all_is_never_shown_as_all():
    made = Goodput({"min": 90, "of": QUICK})
    for first in range(0, 40_000, 10_000):
        made.add(block(*[row(first + number + 1, ended=1) for number in range(10_000)]))
    made.add(block(row(50_000, ended=900)))

    assert ">99.99 % of 40,001 iterations" in made.check(WorkloadStatistics()).detail


def test_it_is_certain_to_fail_once_the_rest_cannot_mend_it():
    made = Goodput({"min": "90 %", "of": QUICK})
    every = Goodput({"min": 100, "of": QUICK})
    statistics = WorkloadStatistics()
    for one in (made, every):
        one.add(block(row(1, ended=1)))
    fine = made.breach(statistics, 20), every.breach(statistics, None)
    for one in (made, every):
        one.add(block(row(2, ended=500), row(3, ended=500)))

    assert fine == (None, None)
    assert made.breach(statistics, 20) is None
    assert made.breach(statistics, None) is None
    assert not made.breach(statistics, 19).success
    # a plan that was too small is no licence
    assert not made.breach(statistics, 1).success
    assert not every.breach(statistics, None).success


def test_slowness_that_may_be_the_generators_is_disputed():
    evaluator = SlaEvaluator([Named(name="good", config={"min": 99, "of": QUICK})], Plugins())
    statistics = WorkloadStatistics()
    rows = block(
        *[row(n, due=n * 10, started=n * 10, ended=n * 10 + 20) for n in range(1, 51)],
        *[row(n, due=n * 10, started=n * 10, ended=n * 10 + 150) for n in range(51, 61)],
    )
    lags = np.array([1_000] * 70 + [140_000_000] * 30, np.int64)
    statistics.add(rows, worker="w")
    statistics.add_process(lags, {})
    evaluator.add(rows, rows_without(rows, lags))

    plain = evaluator.judge(statistics)
    (judged,) = evaluator.judge(statistics, delay=GeneratorDelay(statistics))

    assert [one.disputed for one in plain] == [False]
    assert (judged.success, judged.disputed) == (False, True)
    assert "may be the generator's own doing" in judged.detail


def binomial_tail(least: int, count: int, share: float) -> float:
    """The probability of `least` or more of `count`."""
    return math.fsum(
        math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(least, count + 1)
    )


@pytest.mark.parametrize(("good", "every"), [(0, 10), (10, 10), (3, 10), (99, 100), (371, 400)])
def test_the_interval_is_the_one_of_clopper_and_pearson(good, every):
    low, high = exact_interval(good, every)

    assert low <= good / every <= high
    assert binomial_tail(good, every, low) == pytest.approx(0.025 if good else 1, rel=1e-6)
    assert 1 - binomial_tail(good + 1, every, high) == pytest.approx(
        0.025 if good < every else 1, rel=1e-6
    )


def test_the_interval_holds_the_truth_in_95_of_100_loads_also_of_a_service_with_bad_seconds():
    """Shares and numbers are drawn; half of the services have bad times that last for seconds."""
    loads, held = examples(200), 0
    for seed in range(loads):
        generator = np.random.default_rng(seed)
        share, number = generator.uniform(0.6, 0.99), int(generator.integers(2_000, 6_000))
        instants = np.sort(generator.uniform(0, 300e9, number)).astype(np.int64)
        good = generator.uniform(size=number) < share
        if seed % 2:
            # 600 periods of half a second, good or bad as a whole
            good = (generator.uniform(size=601) < share)[instants // 500_000_000]
        found = GoodCounts()
        found.add(instants, good)
        low, high = found.interval
        held += low <= share <= high

    assert held >= 0.95 * loads - 2 * math.sqrt(loads * 0.95 * 0.05)


def test_counts_of_long_loads_are_kept_in_bounded_memory():
    found = GoodCounts()
    for hour in range(40):
        found.add(np.array([hour * 3600 * 10**9]), np.array([hour % 2 == 0]))

    assert (found.good, found.every) == (20, 40)
    assert found._bins.shape == (2, BINS)
    assert int(found._bins[1].sum()) == 40
    assert (39 * 3600 * 10**9) >> found._bits < BINS
    assert found._bits > BITS


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"min": 0.99, "of": QUICK}, "min is a percentage above 1 and up to 100, such as 99 %"),
        ({"min": "x", "of": QUICK}, "got x"),
        ({"min": 99, "of": [{"p": "response", "max": 10**400}]}, "max: must be at most 1000000000"),
        ({"min": "101 %", "of": QUICK}, "got 101 %"),
        ({"min": "1e9", "of": QUICK}, "got 1e9"),
        ({"min": 99, "of": []}, "at least 1"),
        ({"min": 99}, "of is missing"),
        ({"min": 99, "of": [{"max": 1}]}, "needs either p, action or check, got none of them"),
        ({"min": 99, "of": [{"p": "service", "check": "a"}]}, "got p, check"),
        ({"min": 99, "of": [{"check": "a", "max": 1}]}, "a check has no max"),
        ({"min": 99, "of": [{"p": "response"}]}, "of[0] needs max"),
        ({"min": 99, "of": [{"p": 95, "max": 1}]}, "must be one of"),
        ({"min": 99, "of": [{"p": "response", "max": "soon"}]}, "a duration such as 30s"),
        ({"min": 99, "of": [{"action": "lits", "max": 1}]}, "lits"),
    ],
)
def test_wrong_limits_are_refused_with_their_place(config, said):
    scenario = {
        "HttpFlow.run": {"base": "http://127.0.0.1:1", "steps": [{"name": "list", "path": "/"}]}
    }
    subtask = {
        "title": "a",
        "scenario": scenario,
        "runner": {"constant": {"times": 1}},
        "sla": {"good": config},
    }

    with pytest.raises(TaskError) as caught:
        checked_task({"version": 2, "title": "t", "subtasks": [subtask]}, "task.yaml", Plugins())

    (problem,) = caught.value.problems
    assert said in str(problem)
    assert "sla.good" in str(problem)
