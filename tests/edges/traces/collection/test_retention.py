from dataclasses import replace

import numpy as np

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.retention import (
    EXAMPLE,
    FAILED,
    RANDOM,
    SLOW,
    Retention,
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
