import numpy as np

from osbench.common.outcomes import Outcome
from osbench.coordinator.traces.collection.retention import FAILED, RANDOM, SLOW, Retention
from osbench.coordinator.traces.collection.traced_iterations import TracedIterations

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
        service=np.array(service),
        warming=warm,
        traces=np.random.default_rng(1).integers(0, 256, (count, 16), np.uint8),
    )


def chosen(retention, found, why):
    return np.flatnonzero(retention.choose(found) == why).tolist()


def test_the_slowest_that_succeeded_are_kept_of_each_workload():
    found = rows([5, 9, 1, 7, 8, 90, 2, 3, 4, 6], failed=[5], workload=[0] * 6 + [1] * 4)

    assert chosen(KEEP, found, SLOW) == [1, 3, 4, 7, 8, 9]
    assert chosen(KEEP, found, FAILED) == [5]


def test_of_many_failures_some_from_beginning_to_end_are_kept():
    found = rows([1] * 100, failed=range(10, 90))

    kept = chosen(KEEP, found, FAILED)

    assert len(kept) == 4
    assert (kept[0], kept[-1]) == (10, 89)


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


def test_random_ones_get_half_of_the_room():
    assert KEEP.has_room(SLOW, 999)
    assert not KEEP.has_room(SLOW, 1000)
    assert KEEP.has_room(FAILED, 999)
    assert KEEP.has_room(RANDOM, 499)
    assert not KEEP.has_room(RANDOM, 500)
