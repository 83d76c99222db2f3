"""How the coordinator sees one worker process: silence, shares, speed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.fleet.worker import (
    LossReason,
    Readiness,
    WorkerHandle,
    WorkerState,
)

BEAT = heartbeat("w1", capacity=10)


def beat(number: int, **fields) -> Heartbeat:
    return replace(BEAT, beat=number, **fields)


def test_silence_grows_only_while_the_beat_stands_still():
    worker = WorkerHandle(BEAT)

    worker.hear(None, 0.5)
    worker.hear(beat(1), 0.5)
    assert worker.silence_s == 1.0
    worker.hear(beat(2), 0.5)

    assert worker.silence_s == 0.0


def test_an_old_beat_that_is_sent_again_is_not_heard():
    worker = WorkerHandle(beat(5, state="draining"))

    worker.hear(beat(4), 0.5)

    assert worker.silence_s == 0.5
    assert worker.beat.beat == 5


@pytest.mark.parametrize("state", ["draining", "stuck"])
def test_a_worker_that_leaves_has_no_capacity(state):
    worker = WorkerHandle(BEAT, readiness=Readiness.READY)
    assert worker.capacity == 10

    worker.hear(beat(2, state=state), 0.5)

    assert (worker.state, worker.leaving) == (WorkerState.LEAVING, True)
    assert not worker.takes_work
    assert worker.capacity == 0


def lost(state: WorkerState, **fields) -> WorkerHandle:
    """A worker that has come so far on its way out."""
    worker = WorkerHandle(BEAT, readiness=Readiness.READY, **fields)
    worker.declare_lost(LossReason.SILENT)
    if state is not WorkerState.FENCING:
        worker.fence_read()
    if state is WorkerState.RECLAIMED:
        worker.reclaimed()
    return worker


@pytest.mark.parametrize("state", [WorkerState.FENCED, WorkerState.RECLAIMED])
def test_a_worker_that_is_not_prepared_or_lost_has_no_capacity(state):
    assert WorkerHandle(BEAT).capacity == 0
    assert lost(state).capacity == 0


def test_users_of_a_worker_that_is_being_fenced_still_count_and_it_gets_no_work():
    worker = lost(WorkerState.FENCING, share=3)

    assert (worker.has_users, worker.takes_work) == (True, False)
    assert (worker.present, worker.capacity, worker.share) == (True, 10, 3)


def test_a_fenced_worker_has_no_users_and_those_it_had_are_known():
    worker = lost(WorkerState.FENCED, share=3, held=4, target=3)

    assert (worker.share, worker.held, worker.target) == (0, 0, 0)
    assert worker.lost_share == 3


def test_a_worker_is_to_be_declared_lost_once_it_was_silent_for_long():
    worker = WorkerHandle(BEAT)
    worker.hear(None, 1.5)

    assert worker.due_loss(2.0) is None
    worker.hear(None, 0.5)

    assert worker.due_loss(2.0) is LossReason.SILENT


def test_a_worker_whose_results_cannot_be_read_is_to_be_declared_lost_at_once():
    worker = WorkerHandle(BEAT)

    worker.record_protocol_error()

    assert worker.due_loss(2.0) is LossReason.PROTOCOL_ERROR


def test_a_worker_is_declared_lost_once():
    worker = lost(WorkerState.FENCING)
    worker.hear(None, 9.0)

    assert worker.due_loss(2.0) is None
    with pytest.raises(ValueError, match="FENCING to FENCING"):
        worker.declare_lost(LossReason.SILENT)


def test_users_count_as_held_until_the_worker_shows_that_it_let_go():
    worker = WorkerHandle(BEAT, share=2, held=5, generation=3)

    worker.hear(beat(2, generation=2, busy=1), 0.5)
    assert worker.held == 5
    worker.hear(beat(3, generation=3, busy=4), 0.5)
    assert worker.held == 5
    worker.hear(beat(4, generation=3, busy=2), 0.5)

    assert worker.held == 2


def test_speed_is_users_by_the_length_of_an_iteration():
    worker = WorkerHandle(BEAT, share=4)

    worker.measured(0, 0.0)
    assert worker.rate == 0.0
    worker.measured(40, 20.0)

    assert worker.rate == pytest.approx(8.0)


def test_speed_follows_a_change_within_seconds():
    worker = WorkerHandle(BEAT, share=1)
    worker.measured(100, 1.0)

    for _ in range(5):
        worker.measured(10, 1.0)

    assert 10 < worker.rate < 12


def test_a_new_workload_starts_from_nothing():
    worker = WorkerHandle(
        BEAT,
        readiness=Readiness.READY,
        share=3,
        held=3,
        target=3,
        generation=4,
        rate=9.0,
        blocks=7,
    )

    worker.begin(1)

    assert (worker.share, worker.held, worker.target, worker.generation) == (0, 0, 0, 0)
    assert (worker.ready, worker.rate, worker.granted) == (False, 0.0, (-1, None))
    assert worker.blocks == 7


def test_a_worker_equals_only_itself():
    assert WorkerHandle(BEAT) != WorkerHandle(BEAT)


def test_a_worker_is_idle_while_it_has_nothing_in_hand_and_nothing_waiting():
    worker = WorkerHandle(BEAT)

    worker.hear(beat(2), 0.5)
    worker.hear(beat(3), 0.5)
    assert worker.idle_s == 1.0
    worker.hear(beat(4, queued=1), 0.5)
    assert worker.idle_s == 0.0
    worker.hear(beat(5), 0.5)
    worker.hear(beat(6, busy=1), 0.5)

    assert worker.idle_s == 0.0


def test_a_worker_that_cannot_prepare_is_not_used_for_this_workload():
    worker = WorkerHandle(BEAT, readiness=Readiness.FAILED)
    assert worker.capacity == 0
    assert worker.incarnation == "w1"

    worker.begin(1)

    assert worker.readiness is Readiness.PENDING
