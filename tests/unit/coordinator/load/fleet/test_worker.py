"""How the coordinator sees one membership: silence, loss and return, user limits, speed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.memberships import handle
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.load.fleet.worker import (
    DRY_S,
    GROWTH,
    LeaveReason,
    WorkerHandle,
    WorkerState,
)


def beat(worker: WorkerHandle, number: int, **fields: Any) -> Heartbeat:
    return replace(worker.beat, beat=number, **fields)


def test_silence_grows_only_while_the_beat_stands_still():
    worker = handle()

    worker.hear(None, 0.5, 10.0)
    worker.hear(beat(worker, 1), 0.5, 10.5)
    assert worker.silence_s == 1.0
    heard = worker.hear(beat(worker, 2), 0.5, 11.0)

    assert (heard, worker.silence_s, worker.alive_at) == (True, 0.0, 11.0)


def test_an_old_beat_that_is_put_back_is_no_sign_of_life():
    worker = handle(beat=5)

    heard = worker.hear(beat(worker, 4, state="draining"), 0.5, 10.0)

    assert not heard
    assert (worker.silence_s, worker.beat.beat, worker.leaving) == (0.5, 5, False)


@pytest.mark.parametrize("state", ["draining", "stuck"])
def test_a_worker_that_leaves_has_no_capacity(state):
    worker = handle(capacity=10)
    assert worker.capacity == 10

    worker.hear(beat(worker, 2, state=state), 0.5, 10.0)

    assert (worker.state, worker.leaving) == (WorkerState.LEAVING, True)
    assert not worker.takes_work(10.0)
    assert worker.capacity == 0


@pytest.mark.parametrize("where", [{"run": "", "membership": ""}, {"membership": "other"}])
def test_a_process_that_says_it_is_elsewhere_has_left_and_is_silent(where):
    worker = handle()

    heard = worker.hear(beat(worker, 2, **where), 0.5, 10.0)

    assert not heard
    assert worker.gone
    assert worker.leaving
    assert worker.silence_s == 0.5


def test_who_had_left_by_a_heartbeat_that_was_put_back_is_taken_back():
    worker = handle(beat=1)
    worker.hear(beat(worker, 2, membership="earlier"), 0.5, 10.0)

    worker.hear(beat(worker, 3), 0.5, 10.5)

    assert (worker.state, worker.leave_reason) == (WorkerState.ACTIVE, None)


def test_a_heartbeat_of_an_earlier_session_is_no_sign_of_life_under_this_coordinator():
    worker = handle()

    heard = worker.hear(beat(worker, 2, session="earlier"), 0.5, 10.0)

    assert not heard
    assert worker.beat.beat == 2


def test_a_lost_worker_has_no_users_and_gets_a_new_generation_when_it_is_back():
    worker = handle(user_limit=4, held=4, generation=3)

    worker.declare_lost()

    assert (worker.state, worker.present) == (WorkerState.LOST, False)
    assert (worker.user_limit, worker.held) == (0, 0)
    assert worker.generation == 4
    worker.found()
    assert worker.state is WorkerState.ACTIVE


def test_who_was_leaving_when_it_was_lost_is_leaving_when_it_is_back():
    worker = handle()
    worker.hear(beat(worker, 2, state="draining"), 0.5, 10.0)
    worker.declare_lost()

    worker.found()

    assert (worker.state, worker.leave_reason) == (WorkerState.LEAVING, LeaveReason.DRAINING)


def test_who_has_left_stays_so():
    worker = handle()
    worker.mark_left()

    worker.declare_lost()
    worker.found()

    assert worker.state is WorkerState.LEFT


def test_work_is_for_those_heard_lately_with_nothing_to_give_back():
    worker = handle(alive_at=10.0)

    assert worker.takes_work(10.0 + timers.FRESH_S - 0.01)
    assert not worker.takes_work(10.0 + timers.FRESH_S + 0.01)
    worker.recall.add(3)
    assert not worker.takes_work(10.0)


def test_nothing_is_granted_once_the_final_block_is_there_even_if_others_are_missing():
    worker = handle(alive_at=10.0)
    worker.membership.final, worker.membership.acknowledged = 4, 2

    assert worker.present
    assert not worker.takes_work(10.0)


def test_a_worker_holds_work_until_its_last_block_is_on_disk():
    worker = handle(got=2, made=5)
    known = worker.membership
    known.seq, known.acknowledged = 2, 5
    assert not worker.holds_work

    known.acknowledged = 4
    assert worker.holds_work
    known.acknowledged, known.seq = 5, 3
    assert worker.holds_work
    known.seq = 2
    worker.hear(beat(worker, 2, queued=1), 0.5, 10.0)
    assert worker.holds_work


def test_shares_count_as_held_until_the_heartbeat_shows_the_generation():
    worker = handle(user_limit=2, held=6, generation=3)

    worker.hear(beat(worker, 2, generation=3, surplus=2), 0.5, 10.0)
    assert worker.held == 6
    worker.hear(beat(worker, 3, generation=3, surplus=0), 0.5, 10.5)

    assert worker.held == 2


def test_speed_is_that_of_a_worker_with_enough_to_do():
    worker = handle(user_limit=4)

    worker.measured(40, 2.0)

    assert worker.rate == pytest.approx(80.0)


def test_the_stock_grows_by_reports_up_to_two_seconds_of_work():
    worker = handle(user_limit=4)
    first = timers.BLIND_PER_USER * 4
    assert worker.room() == first
    grown = []
    for _ in range(8):
        worker.measured(1000, 0.04)
        grown.append(worker.room())

    assert grown[:2] == [first * GROWTH, first * GROWTH**2]
    assert grown[-1] == int(worker.rate * timers.STOCK_S)


def test_a_worker_that_is_far_away_has_the_work_of_its_round_trips_on_top():
    near, far, lost = (handle(user_limit=4) for _ in range(3))
    for worker, uncertainty_s in ((near, 0.0), (far, 0.1), (lost, 60.0)):
        worker.beat = replace(worker.beat, uncertainty_s=uncertainty_s)
        for _ in range(8):
            worker.measured(1000, 40.0)

    assert near.room() == int(near.rate * timers.STOCK_S)
    # half of a trip is what the clock is uncertain by
    assert far.room() == int(far.rate * (timers.STOCK_S + timers.TRIPS * 0.2))
    most = timers.TRIPS * timers.TRIP_MOST_S
    assert lost.room() == int(lost.rate * (timers.STOCK_S + most))
    assert near.known
    assert far.known


def test_a_worker_that_has_run_dry_is_as_fast_as_it_says_at_once():
    remembers, follows = handle(user_limit=10), handle(user_limit=10)
    for worker in (remembers, follows):
        worker.measured(10, 30.0)
        assert worker.scant

    remembers.measured(10, 0.1)
    follows.measured(10, 0.1, dry=True)

    assert remembers.rate < 20
    assert follows.rate == pytest.approx(1000.0)
    # no more than a report may bring: the service may be slow after all
    assert follows.room() == GROWTH * timers.STOCK_PER_USER * 10
    assert not follows.scant


def test_a_fast_worker_that_has_run_dry_has_work_until_it_has_reported_again():
    worker = handle(user_limit=10)
    worker.measured(10, 30.0)

    worker.measured(20, 0.02, dry=True)

    assert worker.rate == pytest.approx(10_000.0)
    assert worker.room() == int(worker.rate * DRY_S)


def test_a_worker_that_has_run_dry_is_not_taken_for_slower_than_it_was():
    worker = handle(user_limit=10)
    worker.measured(10, 0.1)

    worker.measured(1, 1.0, dry=True)

    assert worker.rate > 800


def test_a_worker_that_reports_nothing_for_a_while_keeps_two_iterations_a_user():
    worker = handle(user_limit=4)

    worker.slow()

    assert worker.room() == timers.STOCK_PER_USER * 4
    assert worker.known


def test_a_slow_worker_has_two_iterations_a_user():
    worker = handle(user_limit=4)

    worker.measured(4, 80.0)

    assert worker.room() == timers.STOCK_PER_USER * 4


def test_a_worker_of_an_earlier_coordinator_holds_the_users_that_it_says():
    worker = handle(prepared=1)
    worker.beat = beat(worker, 2, prepared=1, user_limit=3, surplus=1, generation=7)

    assert worker.go_on(1)

    assert (worker.user_limit, worker.held, worker.generation) == (3, 4, 7)


def test_a_worker_that_has_dropped_its_workload_holds_no_users():
    worker = handle(prepared=0)
    worker.beat = beat(worker, 2, prepared=0, user_limit=3, surplus=1, generation=7)

    assert not worker.go_on(1)

    assert (worker.user_limit, worker.held, worker.generation) == (0, 0, 0)


def test_long_turns_of_the_coordinator_let_a_worker_have_more_work_and_be_silent_for_longer():
    worker = handle(alive_at=10.0)
    before = worker.trips_s
    worker.turn_s = 0.5

    assert worker.trips_s == before + 1.0
    assert worker.takes_work(10.0 + timers.FRESH_S + 0.49)
    assert not worker.takes_work(10.0 + timers.FRESH_S + 0.51)
