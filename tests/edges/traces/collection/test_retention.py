"""Which traces are kept, which are queried, and which of the found ones are compared."""

from dataclasses import replace

import numpy as np
import pytest

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.retention import (
    EXAMPLE,
    FAILED,
    RANDOM,
    SLOW,
    Retention,
    even_sample,
    queried_rows,
)
from osbench.edges.traces.collection.traced_iterations import TracedIterations

KEEP = Retention(slowest=3, failed=4, share=0.0, limit=1000)


def rows(service, failed=(), warming=(), workload=None):
    count = len(service)
    outcome = np.full(count, int(Outcome.OK))
    outcome[list(failed)] = Outcome.FAILED
    warm = np.zeros(count, bool)
    warm[list(warming)] = True
    return TracedIterations(
        workload=np.zeros(count, int) if workload is None else np.array(workload),
        iteration=np.arange(count),
        outcome=outcome,
        due=np.zeros(count, int),
        started=np.zeros(count, int),
        service=np.array(service),
        response=np.array(service),
        error=np.where(outcome == Outcome.OK, 0, 1),
        warming=warm,
        traces=np.random.default_rng(1).integers(0, 256, (count, 16), np.uint8),
        errors=("", "ValueError"),
    )


def chosen(retention, found, *why):
    return np.flatnonzero(np.isin(retention.choose(found), why)).tolist()


def test_the_slowest_that_succeeded_are_kept_of_each_workload():
    times = [*range(100, 200), 900, *range(300, 400)]
    found = rows(times, failed=[100], workload=[0] * 101 + [1] * 100)

    kept = chosen(KEEP, found, SLOW, EXAMPLE)

    assert {97, 98, 99, 198, 199, 200} <= set(kept)
    assert 100 in kept
    # a few at the percentiles in addition
    assert len(kept) <= 2 * (3 + 3 * 3) + 1


def test_what_is_next_to_the_percentiles_of_service_and_of_response_time_is_kept():
    service = np.random.default_rng(2).permutation(10_000)
    found = replace(rows(service), response=service[::-1].copy())
    keep = Retention(slowest=1, failed=0, share=0.0, limit=1)

    kept = chosen(keep, found, EXAMPLE)

    for times in (found.service, found.response):
        for percent in (50, 95, 99):
            wanted = np.sort(times)[100 * percent - 1]
            assert (times[kept] == wanted).any()
    assert len(kept) == 18


def test_one_of_each_class_of_error_is_kept_however_many_there_are():
    found = rows(list(range(1000)), failed=range(100, 900))
    rare = np.where(np.arange(1000) == 555, 2, found.error)
    found = replace(found, error=rare, errors=("", "ValueError", "KeyError"))

    kept = chosen(KEEP, found, FAILED, EXAMPLE)

    assert 555 in kept
    assert len(kept) == KEEP.failed + 3 * 3
    # the first and the median one of the others
    assert 100 in kept
    assert 500 in kept or 499 in kept


def test_of_many_failures_some_from_beginning_to_end_are_kept():
    found = rows([1] * 100, failed=range(10, 90))

    kept = [at for at in chosen(KEEP, found, FAILED, EXAMPLE) if at in range(10, 90)]

    assert (kept[0], kept[-1]) == (10, 89)
    assert len(kept) == 4


def test_what_warmed_up_is_not_kept():
    found = rows([9, 1, 2, 3, 4], failed=[1], warming=[0, 1])

    everything = Retention(slowest=9, failed=9, share=1.0, limit=1)

    assert np.flatnonzero(everything.choose(found)).tolist() == [2, 3, 4]


def test_a_share_of_all_others_is_kept_and_always_the_same():
    found = rows(list(range(10_000)))
    some = Retention(slowest=0, failed=0, share=0.1, limit=1)

    kept = chosen(some, found, RANDOM)

    assert 900 < len(kept) < 1100
    assert kept == chosen(some, found, RANDOM)
    assert set(kept) > set(chosen(Retention(slowest=0, failed=0, share=0.05, limit=1), found, 3))


def test_random_ones_get_half_of_the_room_and_examples_all_of_it():
    assert KEEP.has_room(EXAMPLE, 999)
    assert not KEEP.has_room(EXAMPLE, 1000)
    assert KEEP.has_room(SLOW, 899)
    assert not KEEP.has_room(SLOW, 900)
    assert KEEP.has_room(FAILED, 899)
    assert KEEP.has_room(RANDOM, 499)
    assert not KEEP.has_room(RANDOM, 500)


def many_rows(count: int, workloads: int = 1, seed: int = 1) -> TracedIterations:
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
    found = many_rows(100)
    reasons = np.zeros(100, np.uint8)
    reasons[:50] = SLOW

    drawn, kept = queried_rows(found, reasons, 4000)

    assert drawn.all()
    assert (kept == reasons).all()


@pytest.mark.parametrize("kept", [0, 100, 50_000])
def test_about_as_many_are_queried_as_there_may_be(kept: int) -> None:
    found = many_rows(100_000)
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
    found = many_rows(10_000)
    reasons = np.full(10_000, FAILED, np.uint8)
    reasons[:10] = EXAMPLE

    _, why = queried_rows(found, reasons, 400)

    assert (why[:10] == EXAMPLE).all()
    assert (why[-90:] == FAILED).all()


def test_the_sample_is_even_whatever_is_kept() -> None:
    found = many_rows(100_000)
    reasons = np.zeros(100_000, np.uint8)
    reasons[-500:] = SLOW

    drawn, _ = queried_rows(found, reasons, 4000)

    at = np.flatnonzero(drawn)
    assert abs(at.mean() / 50_000 - 1) < 0.05


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05, 0.0])
def test_what_was_found_at_random_is_compared_as_it_is(share: float) -> None:
    found = many_rows(5000)
    drawn = np.ones(5000, bool)
    there = np.random.default_rng(7).random(5000) < share

    even = even_sample(found, drawn, there)

    assert (even.chosen == there).all()
    assert even.uneven is None
    assert even.used == even.found == there.sum()


def test_a_backend_that_keeps_slow_traces_more_often_is_seen_and_set_right() -> None:
    found = many_rows(20_000)
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
    found = many_rows(count)
    there = np.ones(count, bool)
    there[:: count // missing] = False
    # the slowest is among them
    there[-1] = False

    even = even_sample(found, np.ones(count, bool), there)

    assert even.uneven is None
    assert even.used == there.sum()


def test_slow_ones_that_are_missing_are_seen_though_they_are_few() -> None:
    found = many_rows(4000)
    there = np.ones(4000, bool)
    there[-20:] = False

    even = even_sample(found, np.ones(4000, bool), there)

    assert even.uneven == (0.5, 1.0)
    assert even.used == pytest.approx(2000, abs=150)


def test_chance_alone_is_hardly_ever_taken_for_sampling_by_duration() -> None:
    chance = np.random.default_rng(3)
    found = many_rows(1000)
    drawn = np.ones(1000, bool)

    uneven = [
        even_sample(found, drawn, chance.random(1000) < share).uneven
        for share in (0.02, 0.5, 0.98, 0.999)
        for _ in range(50)
    ]

    assert not any(uneven)


def test_of_a_backend_that_keeps_slow_traces_only_none_is_compared() -> None:
    found = many_rows(5000)
    there = np.zeros(5000, bool)
    there[-250:] = True

    even = even_sample(found, np.ones(5000, bool), there)

    assert even.used == 0
    assert even.uneven == (0.0, 1.0)


def test_workloads_are_set_right_each_by_itself() -> None:
    found = many_rows(10_000, workloads=2)
    there = np.ones(10_000, bool)
    # odd ones are of the second workload: half of the fast ones are missing
    there[1:5000:4] = False

    even = even_sample(found, np.ones(10_000, bool), there)

    first = found.workload == 0
    assert even.chosen[first].all()
    assert even.chosen[~first].sum() < there[~first].sum()


def test_failed_iterations_and_those_of_the_warm_up_are_no_part_of_the_comparison() -> None:
    found = many_rows(3000)
    found.warming[:1000] = True
    found.outcome[1000:1500] = Outcome.FAILED
    there = np.ones(3000, bool)
    there[:1400] = False

    even = even_sample(found, np.ones(3000, bool), there)

    assert even.uneven is None
    assert (even.chosen == there).all()


def test_nothing_found_of_nothing() -> None:
    even = even_sample(many_rows(0), np.zeros(0, bool), np.zeros(0, bool))

    assert (even.used, even.uneven) == (0, None)
