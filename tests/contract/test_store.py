"""The store of a run does the same in the simulated Redis and in a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

from helpers.local_redis import LocalStore
from osbench.common.errors import StoreError, StoreUnreachable
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import SIZES
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import Store
from osbench.common.protocol.wire import RECORD_BYTES, Wire
from servers import RedisServer, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(unixsocket=True) as found:
        yield found


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    found = connect(server.url, timeout_s=5.0)
    found.flushall()
    yield found
    found.close()


@pytest.fixture(params=["simulated", "redis", "redis-resp2"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "simulated":
        yield LocalStore("r1")
        return
    server = request.getfixturevalue("server")
    protocol = "?protocol=2" if request.param == "redis-resp2" else ""
    client = connect(server.url + protocol, timeout_s=5.0)
    client.flushall()
    yield Store(client, "r1")
    client.close()


@pytest.fixture
def run(store: Store) -> Store:
    """A store whose run is open."""
    store.tend()
    return store


@pytest.fixture
def in_redis(client: redis.Redis) -> Store:
    found = Store(client, "r1")
    found.tend()
    return found


def entries(store: Store, limit: int = 100) -> list[bytes]:
    return [entry for _, entry in store.read(0, limit)]


# results


def test_entries_come_in_order_and_stay_until_they_are_deleted(run):
    for entry in (b"one", b"two", b"three"):
        run.append(entry)

    first = run.read(0, 2)

    assert [entry for _, entry in first] == [b"one", b"two"]
    assert entries(run) == [b"one", b"two", b"three"]
    run.delete([place for place, _ in first])
    assert entries(run) == [b"three"]
    run.delete([])
    run.delete([first[0][0]])
    assert entries(run) == [b"three"]


def test_an_entry_may_take_the_place_of_an_earlier_one(run):
    first = run.append(b"one")
    run.append(b"two")

    second = run.append(b"one", instead_of=first)
    gone = run.append(b"three", instead_of=first)

    assert entries(run) == [b"two", b"one", b"three"]
    assert [place for place, _ in run.read(0, 10)][1:] == [second, gone]


def test_nothing_is_added_to_a_run_that_is_not_there(store):
    assert store.append(b"lost") == ""
    assert store.append(b"lost", instead_of="1-0") == ""

    assert entries(store) == []
    store.tend()
    assert entries(store) == []


def test_nothing_is_added_to_a_run_that_is_closed(run):
    run.append(b"one")
    run.close()

    run.append(b"two")

    assert entries(run) == []


def test_tending_keeps_what_is_there(run):
    run.append(b"one")

    run.tend()

    assert entries(run) == [b"one"]


def test_a_count_of_turns_grows_as_long_as_the_store_loses_nothing(run):
    first = run.tend()

    assert [run.tend(), run.tend()] == [first + 1, first + 2]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda client, key: client.delete(key),
        lambda client, key: client.set(key, b"3"),
        lambda client, key: client.set(key, b"no number"),
        lambda client, key: client.set(key, str(2**63 - 1)),
        lambda client, key: client.delete(key) and client.lpush(key, b"a list"),
    ],
    ids=["deleted", "rolled back", "no number", "largest number", "another type"],
)
def test_a_count_that_does_not_grow_shows_a_loss(client, in_redis, spoil):
    last = [in_redis.tend() for _ in range(5)][-1]
    spoil(client, redis_keys.run("r1", "turns"))

    assert in_redis.tend() <= last


def test_a_read_waits_for_the_first_entry(server, client, in_redis):
    other = connect(server.url, timeout_s=5.0)
    adding = threading.Timer(0.2, lambda: Store(other, "r1").append(b"late"))
    adding.start()

    assert [entry for _, entry in in_redis.read(4.0, 10)] == [b"late"]
    adding.join()
    other.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda client, key: client.delete(key),
        lambda client, key: client.flushall(),
        lambda client, key: client.delete(key) and client.set(key, b"a string"),
        lambda client, key: client.xadd(key, {b"d": b"x"}, id="18446744073709551615-5"),
        lambda client, key: client.xadd(key, {b"d": b"x"}, id=f"{(1 << 63)}-1"),
    ],
    ids=["deleted", "flushed", "another type", "last id of all", "id far ahead"],
)
def test_a_result_stream_that_is_gone_or_unusable_is_made_again(client, in_redis, spoil):
    spoil(client, redis_keys.run("r1", "results"))

    in_redis.read(0, 10)
    in_redis.delete(["1-0"])
    in_redis.tend()
    in_redis.append(b"one")

    assert entries(in_redis) == [b"one"]
    assert client.ttl(redis_keys.run("r1", "results")) > redis_keys.RUN_TTL_S - 60


def test_an_entry_of_another_shape_is_empty(client, in_redis):
    client.xadd(redis_keys.run("r1", "results"), {b"other": b"x"})

    assert entries(in_redis) == [b""]


# control records and specifications


def test_control_records_replace_earlier_ones(run):
    run.put_controls({"m1": b"one", "m2": b"two"})
    run.put_controls({"m1": b"three"})

    assert (run.control("m1"), run.control("m2"), run.control("m3")) == (b"three", b"two", None)


def test_the_last_control_record_outlives_its_run_until_the_worker_has_left(client, in_redis):
    in_redis.put_controls({"m1": b"one", "m2": b"two"})
    in_redis.close(left=["m2"])

    assert client.ttl(redis_keys.control("r1", "m1")) > redis_keys.OVER_TTL_S
    assert 0 < client.ttl(redis_keys.control("r1", "m2")) <= redis_keys.OVER_TTL_S


def test_specifications_are_kept_by_workload(run):
    run.put_specifications({0: b"zero", 1: b"one"})
    run.put_specifications({1: b"changed"})
    run.put_specifications({})

    assert run.specification(0) == b"zero"
    assert run.specification(1) == b"changed"
    assert run.specification(2) is None


def test_a_specification_key_of_another_type_is_replaced(client, in_redis):
    client.set(redis_keys.run("r1", "specs"), b"a string")
    assert in_redis.specification(0) is None

    in_redis.put_specifications({0: b"zero"})

    assert in_redis.specification(0) == b"zero"


def test_closing_leaves_nothing_but_records_that_expire(client, in_redis):
    in_redis.append(b"one")
    in_redis.put_specifications({0: b"zero"})

    in_redis.close()

    assert client.keys("osbench:run:*") == []


# records of unknown senders


def test_records_are_read_at_once_and_bounded(client):
    client.set("a", b"one")
    client.lpush("b", b"a list")
    client.set("d", b"x" * (RECORD_BYTES + 1000))

    found = Wire(client).records(["a", "b", "c", "d"])

    assert found[:3] == [b"one", None, None]
    assert found[3] is not None
    assert len(found[3]) == RECORD_BYTES + 1
    assert Wire(client).records([]) == []


# the server


def test_without_a_server_the_store_is_away(server):
    client = connect("redis://127.0.0.1:1", timeout_s=0.5)
    store = Store(client, "r1")

    for call in (store.tend, lambda: store.read(0, 1), lambda: store.append(b"x"), store.close):
        with pytest.raises(StoreUnreachable):
            call()
    with pytest.raises(StoreUnreachable):
        Wire(client).records(["a"])


def test_without_permission_the_store_says_so(server, client):
    client.acl_setuser(
        "reader", enabled=True, passwords=["+secret"], keys=["other:*"], commands=["+@all"]
    )
    limited = connect(server.url.replace("unix://", "unix://reader:secret@"), timeout_s=5.0)

    with pytest.raises(StoreError, match="refuses access"):
        Store(limited, "r1").append(b"x")
    client.acl_deluser("reader")
    limited.close()


def test_a_specification_that_is_too_large_is_not_read(
    in_redis: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIZES, "specification", 100)
    in_redis.put_specifications({1: b"x" * 100, 2: b"x" * 101})

    assert in_redis.specification(1) == b"x" * 100
    assert in_redis.specification(2) is None
