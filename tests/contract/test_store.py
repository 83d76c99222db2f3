"""The store of a run: in memory and in Redis it does the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from osbench.common.protocol import redis_keys
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import MemoryStore, RedisStore, Store
from servers import RedisServer, redis_server

HEAD = {"epoch": "e1", "boot": "b1", "state": "running"}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(unixsocket=True) as found:
        yield found


@pytest.fixture(params=["memory", "redis", "redis-resp2"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    server = request.getfixturevalue("server")
    protocol = "?protocol=2" if request.param == "redis-resp2" else ""
    client = connect(server.url + protocol, timeout_s=5.0)
    client.flushall()
    yield RedisStore(client, "r1")
    client.close()


@pytest.fixture
def run(store: Store) -> Store:
    """A store whose run is open."""
    store.open(HEAD)
    return store


def entries(store: Store, after: str = "0", limit: int = 100) -> list[bytes]:
    return [entry for _, entry in store.read(after, 0, limit)]


# head


def test_a_run_that_is_not_there_has_no_head(store):
    assert store.head() == {}


def test_the_head_is_what_was_written_and_can_be_changed(run):
    run.open({"state": "stopping"})

    assert run.head() == {**HEAD, "state": "stopping"}


def test_opening_again_keeps_results_and_claims(run):
    run.append(b"one")
    run.claim("e1", "b1", "w1", [1])

    run.open(HEAD)

    assert entries(run) == [b"one"]
    assert run.claim("e1", "b1", "w2", [1]) == ["w1"]


# claims


def test_the_first_to_claim_a_batch_owns_it(run):
    assert run.claim("e1", "b1", "w1", [1, 2]) == ["w1", "w1"]
    assert run.claim("e1", "b1", "w2", [2, 3]) == ["w1", "w2"]


def test_claiming_again_after_a_lost_reply_has_the_same_answer(run):
    run.claim("e1", "b1", "w1", [1])

    assert run.claim("e1", "b1", "w1", [1]) == ["w1"]


def test_nothing_is_claimed_without_batches(run):
    assert run.claim("e1", "b1", "w1", []) == []


@pytest.mark.parametrize(("epoch", "boot"), [("e2", "b1"), ("e1", "b2"), ("", "")])
def test_nobody_claims_for_another_epoch_or_after_a_restart(run, epoch, boot):
    assert run.claim(epoch, boot, "w1", [1]) is None

    assert run.claim("e1", "b1", "w2", [1]) == ["w2"]


def test_nobody_claims_where_the_run_is_not_there(store):
    assert store.claim("e1", "b1", "w1", [1]) is None


# taking away


def test_what_nobody_has_claimed_can_be_taken_away_and_then_not_be_claimed(run):
    assert run.take_away([1, 2]) == [True, True]

    assert run.claim("e1", "b1", "w1", [1, 2, 3]) == ["-", "-", "w1"]


def test_what_was_claimed_cannot_be_taken_away(run):
    run.claim("e1", "b1", "w1", [2])

    assert run.take_away([1, 2, 3]) == [True, False, True]


def test_taking_away_again_after_a_lost_reply_has_the_same_answer(run):
    run.claim("e1", "b1", "w1", [1])
    run.take_away([1, 2])

    assert run.take_away([1, 2]) == [False, True]


def test_taking_nothing_away_is_possible(run):
    assert run.take_away([]) == []


# results


def test_entries_come_in_order_and_as_they_were(run):
    written = [b"", b"\x00\xff", b"x" * 100_000]
    for entry in written:
        run.append(entry)

    assert entries(run) == written


def test_reading_goes_on_behind_a_position(run):
    for entry in (b"1", b"2", b"3"):
        run.append(entry)

    (first, one), (second, two) = run.read("0", 0, 2)
    rest = run.read(second, 0, 2)

    assert (one, two) == (b"1", b"2")
    assert [entry for _, entry in rest] == [b"3"]
    assert [entry for _, entry in run.read(first, 0, 9)] == [b"2", b"3"]


def test_an_empty_stream_has_nothing_even_after_a_wait(run):
    assert run.read("0", 0, 10) == []
    assert run.read("0", 0.01, 10) == []


def test_trimmed_entries_are_gone_and_positions_stay_good(run):
    for entry in (b"1", b"2", b"3"):
        run.append(entry)
    (_, _), (second, _) = run.read("0", 0, 2)

    run.trim(second)
    run.trim(second)

    assert entries(run) == [b"3"]
    assert entries(run, after=second) == [b"3"]


def test_what_was_not_trimmed_is_read_again_from_the_beginning(run):
    run.append(b"1")
    (position, _), *_ = run.read("0", 0, 10)

    assert run.read("0", 0, 10) == [(position, b"1")]


def test_entries_after_everything_was_trimmed_are_found(run):
    run.append(b"1")
    (position, _), *_ = run.read("0", 0, 10)
    run.trim(position)

    run.append(b"2")

    assert entries(run, after=position) == [b"2"]
    assert entries(run) == [b"2"]


# control records and specifications


def test_control_records_are_kept_by_worker_and_replaced(run):
    run.put_controls({"w1": b"one", "w2": b"two"})
    run.put_controls({"w1": b"new"})

    assert run.control("w1") == b"new"
    assert run.control("w2") == b"two"
    assert run.control("w3") is None


def test_no_control_records_are_written_without_any(run):
    run.put_controls({})

    assert run.control("w1") is None


def test_specifications_are_kept_by_workload(run):
    run.put_specification(0, b"zero")
    run.put_specification(1, b"one")

    assert [run.specification(number) for number in (0, 1, 2)] == [b"zero", b"one", None]


# the end


def fill(store: Store) -> None:
    store.claim("e1", "b1", "w1", [1])
    store.append(b"1")
    store.put_controls({"w1": b"one"})
    store.put_specification(0, b"zero")


def test_nothing_of_a_closed_run_is_left(run):
    fill(run)

    run.close(["w1"])

    assert run.head() == {}
    assert run.read("0", 0, 10) == []
    assert run.control("w1") is None
    assert run.specification(0) is None


def test_a_worker_that_comes_back_after_the_end_changes_nothing(run):
    run.close(["w1"])

    run.append(b"late")

    assert run.read("0", 0, 10) == []
    assert run.claim("e1", "b1", "w1", [1]) is None


# what only Redis has


@pytest.fixture
def client(server):
    client = connect(server.url, timeout_s=5.0)
    client.flushall()
    yield client
    client.close()


def test_a_closed_run_leaves_no_key_whoever_comes_back(client):
    store = RedisStore(client, "r1")
    store.open(HEAD)
    fill(store)

    store.close(["w1"])
    store.append(b"late")
    store.claim("e1", "b1", "w1", [1])

    assert client.keys("*") == []


def test_runs_do_not_see_each_other(client):
    one, two = RedisStore(client, "r1"), RedisStore(client, "r2")
    one.open(HEAD)
    two.open(HEAD)
    fill(one)

    one.take_away([7])

    assert two.claim("e1", "b1", "w2", [1, 7]) == ["w2", "w2"]
    assert entries(two) == []
    assert two.control("w1") is None


def test_every_key_of_a_run_expires_when_its_coordinator_is_gone(client):
    store = RedisStore(client, "r1")
    store.open(HEAD)
    fill(store)
    (position, _), *_ = store.read("0", 0, 10)
    store.trim(position)

    names = client.keys("*")

    assert sorted(name.decode().partition(":r1:")[2] for name in names) == [
        "claims",
        "ctl:w1",
        "head",
        "results",
        "specs",
    ]
    assert all(0 < client.ttl(name) <= redis_keys.RUN_TTL_S for name in names)


def test_a_waiting_reader_gets_what_comes_meanwhile(server, client):
    store = RedisStore(client, "r1")
    store.open(HEAD)
    other = RedisStore(connect(server.url, timeout_s=5.0), "r1")
    later = threading.Timer(0.05, other.append, [b"1"])

    later.start()
    found = store.read("0", 4.0, 10)
    later.join()

    assert [entry for _, entry in found] == [b"1"]
