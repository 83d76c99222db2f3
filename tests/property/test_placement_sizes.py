"""Batch sizes are positive, sum to what was meant, and leave no worker without work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helpers.heartbeats import heartbeat
from osbench.coordinator.dispatch import batch_sizes
from osbench.coordinator.fleet.worker import WorkerHandle

shares = st.integers(1, 2000)
rates = st.floats(0.001, 1e6)
limits = st.one_of(st.none(), st.integers(1, 10**6))


def member(share: int, rate: float) -> WorkerHandle:
    return WorkerHandle(heartbeat(), share=share, rate=rate)


@given(shares, st.one_of(st.none(), st.integers(0, 10**9)), limits)
def test_blind_batches_are_the_fair_part_and_no_more(
    share: int, fair: int | None, limit: int | None
) -> None:
    sizes = batch_sizes.blind_sizes(share, fair, limit)

    bound = batch_sizes.BLIND * share
    if limit is not None:
        bound = min(bound, batch_sizes.LIMITED * limit)
        assert max(sizes, default=0) <= limit
    assert sum(sizes) == (bound if fair is None else min(fair, bound))
    assert all(size > 0 for size in sizes)
    if fair is not None:
        assert max(sizes, default=0) <= max(share, fair // 8)


@given(shares, rates, st.one_of(st.none(), st.integers(1, 10**9)), st.integers(1, 200), limits)
def test_a_batch_has_work_and_is_never_too_large(
    share: int, rate: float, left: int | None, workers: int, limit: int | None
) -> None:
    one = member(share, rate)

    size = batch_sizes.batch_size(one, left, workers, limit)

    assert 1 <= size <= batch_sizes.too_large(one)
    assert limit is None or size <= limit


@given(shares, rates, st.integers(0, 10**7))
def test_a_worker_has_at_least_two_iterations_a_user_once_its_room_is_filled(
    share: int, rate: float, outstanding: int
) -> None:
    assert batch_sizes.room(member(share, rate), outstanding) + outstanding >= 2 * share
