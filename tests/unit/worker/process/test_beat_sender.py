"""Heartbeats come in their time and at once on news, and a lease counts from before each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from helpers.engines import until
from helpers.heartbeats import heartbeat
from osbench.common.errors import StoreAway
from osbench.common.protocol import redis_keys, timers
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import connect
from osbench.worker.process.beat_sender import BeatSender
from osbench.worker.session.beat_log import BeatLog
from servers import RedisServer, redis_server

SEALER = Sealer(Keyring.generate())


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server(unixsocket=True) as server:
        yield server


class Beats:
    """A sender and what it was asked to send."""

    def __init__(self, url: str) -> None:
        self.log = BeatLog()
        self.described: list[tuple[int, float, int | None]] = []
        self.trouble: Exception | None = None
        self.sender = BeatSender(
            incarnation="w",
            connect=lambda bound_s: connect(url, bound_s),
            sealer=SEALER,
            log=self.log,
            describe=self._describe,
        )

    def _describe(self, number: int) -> Heartbeat:
        if self.trouble is not None:
            raise self.trouble
        self.described.append((number, time.monotonic(), self.log.sent_ns(number)))
        return heartbeat("w", beat=number)


@contextmanager
def beating(server: RedisServer) -> Iterator[Beats]:
    found = Beats(server.url)
    found.sender.start()
    try:
        yield found
    finally:
        found.sender.close()


def test_the_instant_of_a_heartbeat_is_known_before_it_is_made(shared):
    with beating(shared) as beats:
        until(lambda: len(beats.described) >= 3)

    for _, made, sent_ns in beats.described:
        assert sent_ns is not None
        assert sent_ns <= made * 1e9


def test_heartbeats_are_counted_and_the_process_is_listed(shared):
    with beating(shared) as beats, shared.client() as client:
        until(lambda: len(beats.described) >= 3)
        data = client.get(redis_keys.worker("w"))
        listed = client.sismember(redis_keys.WORKERS, "w")

    assert [number for number, _, _ in beats.described][:3] == [1, 2, 3]
    assert Heartbeat.parse(SEALER.open(Heartbeat.KIND, data)).beat >= 2
    assert listed


def test_news_go_at_once_but_not_all_by_themselves(shared, monkeypatch):
    monkeypatch.setattr(timers, "BEAT_S", 1000.0)
    with beating(shared) as beats:
        before = len(beats.described)
        for _ in range(500):
            beats.sender.wake()
            time.sleep(0.0001)
        until(lambda: len(beats.described) > before)

    instants = [made for _, made, _ in beats.described]
    # the distance is of the sending; what is measured here comes a little after it
    least_s = timers.NEWS_S * (len(instants) - 1)
    assert instants[-1] - instants[0] >= 0.9 * least_s


def test_an_error_of_our_own_ends_no_heartbeats(shared, caplog):
    with beating(shared) as beats:
        beats.trouble = ZeroDivisionError()
        until(lambda: "internal error" in caplog.text)
        before = len(beats.described)
        beats.trouble = None
        until(lambda: len(beats.described) > before)


def test_a_server_that_was_away_is_told_once_and_reached_again(caplog):
    with redis_server() as server, beating(server) as beats:
        server.stop()
        before = len(beats.described)
        until(lambda: len(beats.described) > before + 3)
        told = caplog.text.count("heartbeats go on")
        server.restart()

        def heard() -> bool:
            with server.client() as client:
                return bool(client.exists(redis_keys.worker("w")))

        until(heard)

    assert told == 1


def test_a_server_that_is_away_at_the_start_is_reported():
    with redis_server() as server:
        beats = Beats(server.url)
        server.stop()

        with pytest.raises(StoreAway):
            beats.sender.start()
        beats.sender.close()


def test_another_value_in_place_of_the_list_of_workers_is_replaced(shared, monkeypatch, caplog):
    monkeypatch.setattr("osbench.worker.process.beat_sender.LIST_S", 0.0)
    with beating(shared) as beats, shared.client() as client:
        client.delete(redis_keys.WORKERS)
        client.rpush(redis_keys.WORKERS, "junk")
        until(lambda: client.type(redis_keys.WORKERS) == b"set")
        beats.sender.wake()

        assert client.smembers(redis_keys.WORKERS) == {b"w"}

    assert not caplog.records
