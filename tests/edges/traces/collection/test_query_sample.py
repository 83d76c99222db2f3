"""Which traces are queried, and which of the found ones are compared."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.query_sample import even_sample, queried_rows
from osbench.edges.traces.collection.retention import EXAMPLE, FAILED, RANDOM, SLOW
from osbench.edges.traces.collection.traced_iterations import TracedIterations


def rows(count: int, workloads: int = 1, seed: int = 1) -> TracedIterations:
    """Iterations whose service time grows with their number."""
    chance = np.random.default_rng(seed)
    return TracedIterations(
        workload=np.arange(count) % workloads,
        iteration=np.arange(count),
        outcome=np.full(count, int(Outcome.OK)),
        due=np.zeros(count, int),
        started=np.zeros(count, int),
        service=np.arange(count) * 1000,
        response=np.arange(count) * 1000,
        error=np.zeros(count, int),
        warming=np.zeros(count, bool),
        traces=chance.integers(0, 256, (count, 16), np.uint8),
    )


def test_all_are_queried_if_they_are_few() -> None:
    found = rows(100)
    reasons = np.zeros(100, np.uint8)
    reasons[:50] = SLOW

    drawn, kept = queried_rows(found, reasons, 4000)

    assert drawn.all()
    assert (kept == reasons).all()


@pytest.mark.parametrize("kept", [0, 100, 50_000])
def test_about_as_many_are_queried_as_there_may_be(kept: int) -> None:
    found = rows(100_000)
    reasons = np.zeros(100_000, np.uint8)
    reasons[100_000 - kept :] = SLOW
    reasons[:10_000] = RANDOM

    drawn, why = queried_rows(found, reasons, 4000)

    asked = drawn | (why > 0)
    assert 3700 < asked.sum() < 4300
    assert drawn.sum() > 2700
    # a random one is not queried for its own sake
    assert not ((why == RANDOM) & ~drawn).any()


def test_examples_are_queried_before_others_and_slower_ones_first() -> None:
    found = rows(10_000)
    reasons = np.full(10_000, FAILED, np.uint8)
    reasons[:10] = EXAMPLE

    _, why = queried_rows(found, reasons, 400)

    assert (why[:10] == EXAMPLE).all()
    assert (why[-90:] == FAILED).all()


def test_the_sample_is_even_whatever_is_kept() -> None:
    found = rows(100_000)
    reasons = np.zeros(100_000, np.uint8)
    reasons[-500:] = SLOW

    drawn, _ = queried_rows(found, reasons, 4000)

    at = np.flatnonzero(drawn)
    assert abs(at.mean() / 50_000 - 1) < 0.05


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05, 0.0])
def test_what_was_found_at_random_is_compared_as_it_is(share: float) -> None:
    found = rows(5000)
    drawn = np.ones(5000, bool)
    there = np.random.default_rng(7).random(5000) < share

    even = even_sample(found, drawn, there)

    assert (even.chosen == there).all()
    assert even.uneven is None
    assert even.used == even.found == there.sum()


def test_a_backend_that_keeps_slow_traces_more_often_is_seen_and_set_right() -> None:
    found = rows(20_000)
    drawn = np.ones(20_000, bool)
    there = np.random.default_rng(7).random(20_000) < 0.2
    there[-1000:] = True

    even = even_sample(found, drawn, there)

    assert even.uneven == (pytest.approx(0.2, abs=0.02), 1.0)
    assert even.found == there.sum()
    # as many above p95 as a sample of all would have
    share = even.chosen[-1000:].sum() / even.used
    assert share == pytest.approx(0.05, abs=0.01)
    assert not (even.chosen & ~there).any()


@pytest.mark.parametrize(("count", "missing"), [(100, 1), (700, 2), (4000, 4), (4000, 30)])
def test_a_few_missing_ones_are_chance_whichever_they_are(count: int, missing: int) -> None:
    found = rows(count)
    there = np.ones(count, bool)
    there[:: count // missing] = False
    # the slowest is among them
    there[-1] = False

    even = even_sample(found, np.ones(count, bool), there)

    assert even.uneven is None
    assert even.used == there.sum()


def test_slow_ones_that_are_missing_are_seen_though_they_are_few() -> None:
    found = rows(4000)
    there = np.ones(4000, bool)
    there[-20:] = False

    even = even_sample(found, np.ones(4000, bool), there)

    assert even.uneven == (0.5, 1.0)
    assert even.used == pytest.approx(2000, abs=150)


def test_chance_alone_is_hardly_ever_taken_for_sampling_by_duration() -> None:
    chance = np.random.default_rng(3)
    found = rows(1000)
    drawn = np.ones(1000, bool)

    uneven = [
        even_sample(found, drawn, chance.random(1000) < share).uneven
        for share in (0.02, 0.5, 0.98, 0.999)
        for _ in range(50)
    ]

    assert not any(uneven)


def test_of_a_backend_that_keeps_slow_traces_only_none_is_compared() -> None:
    found = rows(5000)
    there = np.zeros(5000, bool)
    there[-250:] = True

    even = even_sample(found, np.ones(5000, bool), there)

    assert even.used == 0
    assert even.uneven == (0.0, 1.0)


def test_workloads_are_set_right_each_by_itself() -> None:
    found = rows(10_000, workloads=2)
    there = np.ones(10_000, bool)
    # odd ones are of the second workload: half of the fast ones are missing
    there[1:5000:4] = False

    even = even_sample(found, np.ones(10_000, bool), there)

    first = found.workload == 0
    assert even.chosen[first].all()
    assert even.chosen[~first].sum() < there[~first].sum()


def test_failed_iterations_and_those_of_the_warm_up_are_no_part_of_the_comparison() -> None:
    found = rows(3000)
    found.warming[:1000] = True
    found.outcome[1000:1500] = Outcome.FAILED
    there = np.ones(3000, bool)
    there[:1400] = False

    even = even_sample(found, np.ones(3000, bool), there)

    assert even.uneven is None
    assert (even.chosen == there).all()


def test_nothing_found_of_nothing() -> None:
    even = even_sample(rows(0), np.zeros(0, bool), np.zeros(0, bool))

    assert (even.used, even.uneven) == (0, None)
