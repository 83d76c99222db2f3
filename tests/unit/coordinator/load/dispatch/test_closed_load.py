"""Batch sizes: about a second of work, less near the end."""

from __future__ import annotations

from dataclasses import replace

from helpers.memberships import handle
from osbench.coordinator.load.dispatch.closed_load import batch_size


def test_before_its_speed_is_known_a_worker_gets_one_iteration_a_user():
    assert batch_size(handle(user_limit=4), 1000, 2) == 4


def test_a_batch_is_about_a_second_of_work():
    assert batch_size(handle(user_limit=4, rate=500.0), None, 2) == 500


def test_batches_that_carry_rows_have_a_limit():
    assert batch_size(handle(user_limit=4, rate=500.0), None, 2, 6) == 6
    assert batch_size(handle(user_limit=8), None, 2, 6) == 6


def test_long_iterations_go_out_one_by_one():
    assert batch_size(handle(user_limit=4, rate=0.1), None, 2) == 1


def test_batches_shrink_near_the_end_down_to_a_tenth_of_a_second():
    fast = handle(user_limit=4, rate=500.0)

    assert batch_size(fast, 1000, 2) == 250
    assert batch_size(fast, 10, 2) == 50
    assert batch_size(handle(user_limit=1, rate=2.0), 1, 2) == 1


def test_batches_of_a_worker_that_is_far_away_shrink_less():
    far = handle(user_limit=4, rate=500.0)
    far.beat = replace(far.beat, uncertainty_s=0.1)

    # one batch arrives in each round trip of 0.2 s
    assert batch_size(far, 10, 2) == 150
