"""The simulated Redis of worlds answers random sequences of commands as a real one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from helpers.examples import examples
from osbench.common.protocol.redis_client import connect
from servers import RedisServer, redis_server
from world.simulated_redis import SimulatedRedis, play

#: Few, so that many commands meet a value of another type.
KEYS = some.sampled_from(("one", "two", "three"))
BYTES = some.sampled_from((b"a", b"b", b"1", b"-1", b"007", b"9223372036854775807", b""))
#: Which of the entries added so far; a command names it once it is known.
ENTRIES = some.integers(0, 5)
SECONDS = some.integers(10, 2000)
#: Commands whose answers `Teller` has to put into other words.
TOLD_OTHERWISE = ("xread", "xdel", "xadd", "xinfo_stream", "sscan_iter", "expire", "ttl")


def command(name: str, *args: Any, **named: Any) -> Any:
    """A strategy of calls."""
    return some.tuples(some.just(name), some.tuples(*args), some.fixed_dictionaries(named))


COMMANDS = some.one_of(
    command("set", KEYS, BYTES, ex=some.none() | SECONDS),
    command("get", KEYS),
    command("getrange", KEYS, some.integers(0, 3), some.integers(0, 30)),
    command("incr", KEYS),
    command("delete", KEYS, KEYS),
    command("expire", KEYS, SECONDS),
    command("ttl", KEYS),
    command("type", KEYS),
    command("sadd", KEYS, BYTES, BYTES),
    command("srem", KEYS, BYTES, BYTES),
    command("sscan_iter", KEYS, count=some.just(1000)),
    command("hset", KEYS, mapping=some.dictionaries(BYTES, BYTES, min_size=1, max_size=3)),
    command("hget", KEYS, BYTES),
    command("hstrlen", KEYS, BYTES),
    command("xadd", KEYS, some.just({b"d": b"block"}), nomkstream=some.booleans()),
    command("xdel", KEYS, ENTRIES),
    command("xtrim", KEYS, maxlen=some.integers(0, 2), approximate=some.just(False)),
    command("xinfo_stream", KEYS),
    command("xread", some.tuples(KEYS, some.just("0")), count=some.integers(1, 3)),
    command("rpush", KEYS, BYTES, BYTES),
    command("lpop", KEYS),
)


class Teller:
    """Sends commands to a server, and tells what it answered in words that both can say."""

    def __init__(self, server: Any) -> None:
        self._server = server
        #: Ids of the entries added, oldest first, by stream: those of two may be the same.
        self._places: dict[str, list[bytes]] = {}

    def tell(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The answer to one command."""
        try:
            answer = getattr(self._server, name)(*self._named(name, args), **named)
            # an iterator asks only now
            return self._plain(name, args, answer)
        except redis.ResponseError as error:
            # with and without its code, as redis-py has a class for it
            return "error", str(error).removeprefix("ERR ").split()[0]

    def _named(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if name == "xread":
            key, after = args[0]
            return ({key: after},)
        if name == "xdel":
            key, at = args
            places = self._places.get(key, [])
            return (key, places[at] if at < len(places) else b"1-1")
        return args

    def _plain(self, name: str, args: tuple[Any, ...], answer: Any) -> Any:
        if name == "sscan_iter":
            return sorted(answer)
        if name == "xadd" and answer is not None:
            places = self._places.setdefault(args[0], [])
            places.append(answer)
            answer = len(places)
        if name == "xinfo_stream":
            answer = self._at(args[0], answer["last-generated-id"])
        if name == "xread":
            streams = list(answer.items()) if isinstance(answer, dict) else answer
            found = [
                (key, entries[0] if isinstance(answer, dict) else entries)
                for key, entries in streams
            ]
            return [
                (key, [(self._at(key.decode(), at), fields) for at, fields in part])
                for key, part in found
            ]
        if name == "ttl":
            # seconds pass on a busy machine
            answer = min(answer, 0)
        return bool(answer) if name == "expire" else answer

    def _at(self, key: str, place: bytes) -> int:
        return self._places[key].index(place)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(unixsocket=True) as found:
        yield found


@pytest.fixture(params=["", "?protocol=2"], ids=["resp3", "resp2"])
def client(server: RedisServer, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    found = connect(server.url + request.param, timeout_s=5.0)
    yield found
    found.close()


def simulated(client: redis.Redis) -> SimulatedRedis:
    """One whose clock is that of the real server."""

    def now_ns() -> int:
        seconds, microseconds = client.time()
        return (seconds * 1_000_000 + microseconds) * 1000

    return SimulatedRedis(now_ns)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(COMMANDS, max_size=25))
@example(
    [
        ("xadd", ("one", {b"d": b""}), {"nomkstream": False}),
        ("xdel", ("one", 0), {}),
        ("xinfo_stream", ("one",), {}),
        ("type", ("one",), {}),
    ]
)
@example(
    [("sadd", ("one", b"a", b"b"), {}), ("srem", ("one", b"a", b"b"), {}), ("type", ("one",), {})]
)
def test_commands_are_answered_alike(client: redis.Redis, commands: list[Any]) -> None:
    client.flushall()
    real, other = Teller(client), Teller(simulated(client))

    for name, args, named in commands:
        assert other.tell(name, args, named) == real.tell(name, args, named), name


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(COMMANDS, min_size=1, max_size=8))
def test_a_pipeline_goes_on_behind_an_error(client: redis.Redis, commands: list[Any]) -> None:
    plain = [one for one in commands if one[0] not in TOLD_OTHERWISE]
    client.flushall()
    other = simulated(client)

    pipe = client.pipeline(transaction=False)
    for name, args, named in plain:
        getattr(pipe, name)(*args, **named)
    found = pipe.execute(raise_on_error=False) if plain else []

    assert _words(play(other, plain)) == _words(found)


def _words(answers: list[Any]) -> list[Any]:
    return [str(one).split()[0] if isinstance(one, Exception) else one for one in answers]


@pytest.mark.parametrize(
    "asks",
    [
        lambda one: one.set("one", b"a"),
        lambda one: one.incr("one"),
        lambda one: one.sadd("one", b"a"),
        lambda one: one.hset("one", mapping={b"a": b"b"}),
        lambda one: one.xadd("one", {b"d": b""}),
        lambda one: one.xadd("one", {b"d": b""}, nomkstream=True),
        lambda one: one.rpush("one", b"a"),
        lambda one: (one.get("one"), one.lpop("one"), one.expire("one", 9), one.delete("one")),
    ],
    ids=["set", "incr", "sadd", "hset", "xadd", "xadd no stream", "rpush", "others"],
)
def test_without_memory_what_adds_data_is_refused(
    client: redis.Redis, asks: Callable[[Any], object]
) -> None:
    client.flushall()
    other = simulated(client)
    other.is_full = lambda: True

    client.config_set("maxmemory", 1)
    try:
        answers = [_answer_or_error(asks, one) for one in (client, other)]
    finally:
        client.config_set("maxmemory", 0)

    assert answers[0] == answers[1]


def _answer_or_error(asks: Callable[[Any], object], one: Any) -> object:
    try:
        return asks(one)
    except redis.ResponseError as error:
        return type(error), str(error)


@pytest.mark.parametrize("passes", [lambda one: one.expire("one", -1)], ids=["expire"])
def test_what_has_expired_is_not_there(
    client: redis.Redis, passes: Callable[[Any], object]
) -> None:
    answers = []

    for one in (client, simulated(client)):
        one.delete("one")
        one.set("one", b"a")
        passes(one)
        answers.append((one.get("one"), one.type("one"), one.ttl("one"), one.delete("one")))

    assert answers[0] == answers[1]


def test_a_snapshot_is_not_changed_by_later_commands() -> None:
    one = SimulatedRedis(lambda: 10**9)
    one.xadd("stream", {b"d": b"first"})
    one.set("key", b"first", ex=10)
    kept = one.snapshot()

    one.xadd("stream", {b"d": b"second"})
    one.set("key", b"second")
    one.restore(kept)

    assert len(one.xread({"stream": "0"})[0][1]) == 1
    assert (one.get("key"), one.ttl("key")) == (b"first", 10)
