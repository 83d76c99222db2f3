"""The proxy and the fragile Redis of chaos rounds do what they say, and nothing by themselves."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from helpers.arena import wait_until
from servers.fragile_redis import FragileRedis, fragile_redis
from servers.redis_proxy import RedisProxy, Tape, redis_proxy

pytestmark = pytest.mark.functional


@pytest.fixture
def fragile() -> Iterator[FragileRedis]:
    with fragile_redis(password="functional") as server:
        yield server


@pytest.fixture
def tape() -> Tape:
    return Tape()


@pytest.fixture
def proxy(fragile: FragileRedis, tape: Tape) -> Iterator[RedisProxy]:
    with redis_proxy(lambda: fragile.port, fragile.password, tape=tape) as found:
        yield found


@pytest.fixture
def client(proxy: RedisProxy) -> Iterator[redis.Redis]:
    made = redis.Redis.from_url(proxy.url, socket_timeout=20.0, retry=Retry(NoBackoff(), 0))
    with contextlib.closing(made):
        yield made


def test_all_passes_where_nothing_is_meddled_with(client: redis.Redis, tape: Tape) -> None:
    client.set("a", "1")
    with client.pipeline() as pipeline:
        done = pipeline.set("a", "2").xadd("s", {"x": "y"}).get("a").execute()

    assert done[0] is True
    assert done[2] == client.get("a") == b"2"
    assert len(tape.heard()) == 3
    assert all(b"functional" not in raw for raw in tape.heard())


def test_what_is_swallowed_is_confirmed_and_not_done(
    client: redis.Redis, proxy: RedisProxy
) -> None:
    client.set("a", "1")
    proxy.shares["swallow"] = 1.0

    assert client.set("a", "2") is True
    with client.pipeline() as pipeline:
        assert pipeline.set("a", "3").set("b", "3").execute() == [True, True]

    assert client.mget("a", "b") == [b"1", None]
    assert proxy.counts["swallow"] == 2


def test_what_is_reordered_is_done_later(client: redis.Redis, proxy: RedisProxy) -> None:
    proxy.shares["reorder"] = 1.0

    for number in range(20):
        client.rpush("list", number)

    assert wait_until(lambda: client.llen("list") == 20)
    found = [int(one) for one in client.lrange("list", 0, -1)]
    assert sorted(found) == list(range(20))
    assert found != sorted(found)


def test_what_is_repeated_is_done_twice(client: redis.Redis, proxy: RedisProxy) -> None:
    proxy.shares["repeat"] = 1.0

    client.xadd("s", {"x": "y"})

    assert wait_until(lambda: client.xlen("s") == 2)


def test_what_loses_its_reply_is_done(
    client: redis.Redis, proxy: RedisProxy, fragile: FragileRedis
) -> None:
    proxy.shares["lose_replies"] = 1.0

    with pytest.raises(redis.ConnectionError):
        client.set("a", "1")

    assert fragile.client().get("a") == b"1"


def test_a_cut_ends_connections_and_refuses_new_ones(
    client: redis.Redis, proxy: RedisProxy
) -> None:
    client.ping()

    proxy.cut(3600.0)

    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    proxy.heal()
    assert client.ping()


def test_a_hang_keeps_connections(client: redis.Redis, proxy: RedisProxy) -> None:
    client.ping()
    begun = time.monotonic()

    proxy.hang(1.0)

    assert client.ping()
    assert time.monotonic() - begun >= 0.9


def test_redis_comes_back_with_its_file_an_older_one_or_none(fragile: FragileRedis) -> None:
    def keys() -> list[bytes]:
        return fragile.keys()

    with contextlib.closing(fragile.client()) as client:
        client.set("old", "1")
        copy = fragile.copied()
        client.set("new", "1")

    fragile.begin_again()
    assert keys() == [b"new", b"old"]
    fragile.kill()
    fragile.cut_off(5)
    fragile.begin_again()
    assert keys() == [b"old"]
    fragile.begin_again(copy)
    assert keys() == [b"old"]
    replica = fragile.start_replica(copy)
    try:
        assert replica.keys() == [b"old"]
        assert replica.port != fragile.port
    finally:
        replica.kill()
    fragile.begin_empty()
    assert keys() == []


def test_redis_that_is_full_refuses_writes_until_it_is_not(fragile: FragileRedis) -> None:
    with contextlib.closing(fragile.client()) as client:
        fragile.fill()
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("a", "1")
        fragile.free()
        assert client.set("a", "1")
