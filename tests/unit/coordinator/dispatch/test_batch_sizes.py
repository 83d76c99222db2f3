"""Sizes of batches at a run's beginning, middle and end."""

from __future__ import annotations

import pytest

from helpers.heartbeats import heartbeat
from osbench.coordinator.dispatch import batch_sizes
from osbench.coordinator.fleet.worker import WorkerHandle


def member(share: int, rate: float) -> WorkerHandle:
    return WorkerHandle(heartbeat(), share=share, rate=rate)


def test_blind_batches_begin_with_one_iteration_a_user_and_grow():
    sizes = batch_sizes.blind_sizes(4, None)

    assert sizes[:5] == [4, 4, 8, 16, 32]
    assert sum(sizes) == batch_sizes.BLIND * 4


def test_of_a_short_plan_no_blind_batch_is_much_of_it():
    assert batch_sizes.blind_sizes(2, 80) == [2, 2, 4, 8, *[10] * 6, 4]


def test_batches_that_carry_rows_have_a_limit():
    assert batch_sizes.blind_sizes(4, None, 6)[:4] == [4, 4, 6, 6]
    assert sum(batch_sizes.blind_sizes(4, None, 6)) == batch_sizes.LIMITED * 6
    assert batch_sizes.batch_size(member(4, 500.0), None, 2, 6) == 6


@pytest.mark.parametrize(("share", "fair"), [(0, 10), (3, 0), (0, None)])
def test_nobody_gets_blind_batches_without_users_or_plan(share, fair):
    assert batch_sizes.blind_sizes(share, fair) == []


def test_a_batch_is_about_a_second_of_work_and_a_worker_has_two():
    fast = member(4, 500.0)

    assert batch_sizes.batch_size(fast, None, 2) == 500
    assert batch_sizes.room(fast, 300) == 700
    assert batch_sizes.too_large(fast) == 1000


def test_long_iterations_go_out_one_by_one_but_every_user_has_one_more():
    slow = member(4, 0.1)

    assert batch_sizes.batch_size(slow, None, 2) == 1
    assert batch_sizes.room(slow, 5) == 3


def test_batches_shrink_near_the_end_down_to_a_tenth_of_a_second():
    fast = member(4, 500.0)

    assert batch_sizes.batch_size(fast, 1000, 2) == 250
    assert batch_sizes.batch_size(fast, 10, 2) == 50
    assert batch_sizes.batch_size(member(1, 2.0), 1, 2) == 1
