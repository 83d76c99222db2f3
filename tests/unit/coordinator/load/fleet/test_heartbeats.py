"""Heartbeats of workers as they lie in Redis: which of them are signs of life."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from helpers.local_redis import LocalRedis
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.load.fleet import heartbeats
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader


class Desk:
    """A reader, the server, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.signer = Signer(Keyring.generate())
        self.server: Any = LocalRedis(lambda: 10**18)
        self.reader = HeartbeatReader(self.server, self.signer)
        monkeypatch.setattr(heartbeats.time, "monotonic", lambda: self.now)

    def beat(self, number: int) -> None:
        """Worker w1 says something."""
        body = heartbeat("w1", beat=number).body()
        self.server.set(redis_keys.worker("w1"), self.signer.sign(Heartbeat.KIND, body))
        self.server.sadd(redis_keys.WORKERS, "w1")

    def heard(self, at_s: float) -> list[int]:
        """The heartbeats that are there at an instant."""
        self.now = at_s
        return [one.beat for one in self.reader.present()]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


def test_a_heartbeat_that_stays_the_same_is_no_sign_of_life(desk: Desk) -> None:
    desk.beat(1)

    assert [desk.heard(0.0), desk.heard(4.0), desk.heard(6.0), desk.heard(60.0)] == [
        [1],
        [1],
        [],
        [],
    ]


def test_a_worker_that_is_heard_again_is_there_again(desk: Desk) -> None:
    desk.beat(1)
    desk.heard(0.0)
    desk.heard(60.0)

    desk.beat(2)

    assert desk.heard(61.0) == [2]


def test_a_heartbeat_of_somebody_else_is_refused_once(desk: Desk) -> None:
    desk.server.set(redis_keys.worker("w1"), b"anything")
    desk.server.sadd(redis_keys.WORKERS, "w1")

    assert desk.heard(0.0) == desk.heard(9.0) == []
    assert (desk.reader.refused, desk.reader.unverified_names) == (1, ["w1"])


def test_names_without_a_heartbeat_are_taken_off_the_list(desk: Desk) -> None:
    desk.server.sadd(redis_keys.WORKERS, "w7")

    assert desk.heard(0.0) == []
    assert desk.server.type(redis_keys.WORKERS) == b"none"
