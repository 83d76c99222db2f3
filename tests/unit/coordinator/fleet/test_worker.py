"""How the coordinator sees one worker process: silence, shares, speed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.fleet.worker import Member

BEAT = heartbeat("w1", capacity=10)


def beat(number: int, **fields) -> Heartbeat:
    return replace(BEAT, beat=number, **fields)


def test_silence_grows_only_while_the_beat_stands_still():
    member = Member(BEAT)

    member.hear(None, 0.5)
    member.hear(beat(1), 0.5)
    assert member.silence_s == 1.0
    member.hear(beat(2), 0.5)

    assert member.silence_s == 0.0


def test_an_old_beat_that_is_sent_again_is_not_heard():
    member = Member(beat(5, state="draining"))

    member.hear(beat(4), 0.5)

    assert member.silence_s == 0.5
    assert member.beat.beat == 5


@pytest.mark.parametrize("state", ["draining", "stuck"])
def test_a_worker_that_leaves_has_no_capacity(state):
    member = Member(BEAT, ready=True)
    assert member.capacity == 10

    member.hear(beat(2, state=state), 0.5)

    assert not member.active
    assert member.capacity == 0


def test_a_worker_that_is_not_prepared_or_given_up_has_no_capacity():
    assert Member(BEAT).capacity == 0
    assert Member(BEAT, ready=True, fenced=True).capacity == 0


def test_users_count_as_held_until_the_worker_shows_that_it_let_go():
    member = Member(BEAT, share=2, held=5, generation=3)

    member.hear(beat(2, generation=2, busy=1), 0.5)
    assert member.held == 5
    member.hear(beat(3, generation=3, busy=4), 0.5)
    assert member.held == 5
    member.hear(beat(4, generation=3, busy=2), 0.5)

    assert member.held == 2


def test_speed_is_users_by_the_length_of_an_iteration():
    member = Member(BEAT, share=4)

    member.measured(0, 0.0)
    assert member.rate == 0.0
    member.measured(40, 20.0)

    assert member.rate == pytest.approx(8.0)


def test_speed_follows_a_change_within_seconds():
    member = Member(BEAT, share=1)
    member.measured(100, 1.0)

    for _ in range(5):
        member.measured(10, 1.0)

    assert 10 < member.rate < 12


def test_a_new_workload_starts_from_nothing():
    member = Member(BEAT, ready=True, share=3, held=3, target=3, generation=4, rate=9.0, blocks=7)

    member.begin(1)

    assert (member.share, member.held, member.target, member.generation) == (0, 0, 0, 0)
    assert (member.ready, member.rate, member.granted) == (False, 0.0, (-1, None))
    assert member.blocks == 7


def test_a_member_equals_only_itself():
    assert Member(BEAT) != Member(BEAT)


def test_a_worker_is_idle_while_it_has_nothing_in_hand_and_nothing_waiting():
    member = Member(BEAT)

    member.hear(beat(2), 0.5)
    member.hear(beat(3), 0.5)
    assert member.idle_s == 1.0
    member.hear(beat(4, queued=1), 0.5)
    assert member.idle_s == 0.0
    member.hear(beat(5), 0.5)
    member.hear(beat(6, busy=1), 0.5)

    assert member.idle_s == 0.0


def test_a_worker_that_cannot_prepare_is_not_used_for_this_workload():
    member = Member(BEAT, ready=True, unfit=True)
    assert member.capacity == 0
    assert member.incarnation == "w1"

    member.begin(1)

    assert member.active
