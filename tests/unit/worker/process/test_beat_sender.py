"""Heartbeats go on whatever happens to one of them, the first too."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from helpers.engines import until
from helpers.heartbeats import heartbeat
from osbench.common.errors import StoreError
from osbench.worker.process.beat_sender import BeatSender
from osbench.worker.session.beat_log import BeatLog


class FailingRedis:
    """A client whose first pipelines fail."""

    connection_pool = redis.ConnectionPool(host="h")

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.sent = 0

    def __call__(self, timeout_s: float) -> Any:
        return self

    def pipeline(self, *, transaction: bool) -> Any:
        return self

    def execute(self, *, raise_on_error: bool) -> list[Any]:
        if self._errors:
            raise self._errors.pop(0)
        self.sent += 1
        return []

    def set(self, *_: Any, **__: Any) -> None: ...

    def sadd(self, *_: Any) -> None: ...

    def close(self) -> None: ...


def sender(connect: FailingRedis) -> BeatSender:
    signer: Any = type("Signer", (), {"sign": lambda *_: b"signed"})()
    return BeatSender(
        incarnation="w.1.a",
        connect=connect,
        signer=signer,
        log=BeatLog(),
        describe=lambda number: heartbeat("w.1.a", beat=number),
    )


def test_a_first_heartbeat_that_is_lost_ends_nothing(caplog):
    client = FailingRedis(redis.TimeoutError("Timeout connecting to server"))
    beats = sender(client)

    beats.start()

    until(lambda: client.sent >= 1)
    beats.close()
    assert "heartbeats continue" in caplog.text


def test_a_server_that_refuses_the_first_heartbeat_is_an_error():
    beats = sender(FailingRedis(redis.exceptions.NoPermissionError("no SET")))

    with pytest.raises(StoreError):
        beats.start()
