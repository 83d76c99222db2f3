"""Batch sizes are positive and bounded, whatever the speed and the plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helpers.memberships import handle
from osbench.common.protocol import timers
from osbench.coordinator.load.dispatch.closed_load import BATCH_S, batch_size
from osbench.coordinator.load.fleet.worker import GROWTH

user_limits = st.integers(1, 2000)
rates = st.floats(0.001, 1e6)
limits = st.one_of(st.none(), st.integers(1, 10**6))


@given(user_limits, rates, st.one_of(st.none(), st.integers(1, 10**9)), st.integers(1, 200), limits)
def test_a_batch_has_work_and_is_never_more_than_a_second_of_it(
    user_limit: int, rate: float, left: int | None, workers: int, limit: int | None
) -> None:
    size = batch_size(handle(user_limit=user_limit, rate=rate), left, workers, limit)

    assert 1 <= size <= max(rate * BATCH_S, user_limit)
    assert limit is None or size <= limit


@given(user_limits, st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e4)), max_size=20))
def test_a_worker_may_always_have_two_iterations_a_user_and_grows_by_a_factor_at_most(
    user_limit: int, reports: list[tuple[int, float]]
) -> None:
    worker = handle(user_limit=user_limit)
    for rows, busy_s in reports:
        before = worker.room()
        worker.measured(rows, busy_s)
        assert timers.STOCK_PER_USER * user_limit <= worker.room() <= GROWTH * before
