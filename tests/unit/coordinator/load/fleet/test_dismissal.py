"""Who cleans up after a run whose coordinator is gone knows which iterations have ended."""

from __future__ import annotations

from helpers.heartbeats import heartbeat
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.load.fleet.dismissal import RunningIterations

#: An instant at which every lease has ended for one who began to look at 0.
LATER = timers.LEASE_S * (1 + timers.DRIFT) + timers.BEAT_S


class Beats:
    """In place of a reader of heartbeats: what a test says."""

    def __init__(self, *beats: Heartbeat) -> None:
        self.said = list(beats)

    def present(self, *, relist: bool = True) -> list[Heartbeat]:
        return self.said


def names(found: list[Heartbeat]) -> list[str]:
    return [beat.incarnation for beat in found]


def test_a_worker_may_begin_iterations_while_its_lease_lasts():
    beats = Beats(heartbeat("w", run="r", beat=1, busy=0, queued=0))
    running = RunningIterations(beats, "r", 0.0)

    assert names(running.at(0.0)) == ["w"]

    beats.said = [heartbeat("w", run="r", beat=4, busy=0, queued=3)]
    assert names(running.at(1.0)) == ["w"]


def test_a_heartbeat_that_is_older_than_the_end_of_the_leases_tells_nothing():
    beats = Beats(heartbeat("w", run="r", beat=6, busy=0))
    running = RunningIterations(beats, "r", 0.0)

    assert names(running.at(LATER)) == ["w"]
    assert names(running.at(LATER + 0.1)) == ["w"]

    beats.said = [heartbeat("w", run="r", beat=7, busy=0, queued=3)]
    assert running.at(LATER + 0.5) == []


def test_what_runs_when_the_leases_end_is_waited_for():
    beats = Beats(heartbeat("w", run="r", beat=6, busy=2), heartbeat("v", run="r", beat=9, busy=0))
    running = RunningIterations(beats, "r", 0.0)
    running.at(LATER)

    beats.said = [heartbeat("w", run="r", beat=7, busy=1), heartbeat("v", run="r", beat=10)]
    assert names(running.at(LATER + 0.5)) == ["w"]

    beats.said = [heartbeat("w", run="r", beat=8, busy=0), heartbeat("v", run="r", beat=11)]
    assert running.at(LATER + 1.0) == []


def test_workers_of_other_runs_and_free_ones_are_not_waited_for():
    beats = Beats(heartbeat("w", run="q", busy=3), heartbeat("v", state="idle"))

    running = RunningIterations(beats, "r", 0.0)

    assert running.at(0.0) == running.at(LATER) == []
