"""Redis in memory: the commands that osbench sends, as a real server answers them.

`tests/contract/test_redis_commands.py` plays the same commands on a real one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import redis

_WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
_NO_INTEGER = "value is not an integer or out of range"
_NO_MEMORY = "command not allowed when used memory > 'maxmemory'."
_OVERFLOW = "increment or decrement would overflow"
#: Largest integer that INCR makes.
_INTEGER_MOST = 2**63 - 1


class Set(dict[bytes, None]):
    """A set, in the order in which it was filled."""


class Hash(dict[bytes, bytes]):
    """A hash."""


class Stream(dict[tuple[int, int], dict[bytes, bytes]]):
    """A stream; ids are milliseconds and a number."""

    def __init__(self) -> None:
        super().__init__()
        self.last = (0, 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> Stream:
        found = Stream()
        found.update(self)
        found.last = self.last
        return found


Value = bytes | Set | Hash | Stream | list[bytes]


def _raw(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _place(place: str | bytes) -> tuple[int, int]:
    milliseconds, _, number = _raw(place).partition(b"-")
    return int(milliseconds), int(number or 0)


class SimulatedRedis:
    """The keys of a server. Methods are commands; they raise redis.ResponseError as redis-py does.

    Nobody waits here: `xread` and `lpop` answer at once. `on_added` is called with the key that a
    blocking command may wait for.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        """`now_ns`: the clock of the server, nanoseconds since 1970."""
        self._now_ns = now_ns
        self.keys: dict[bytes, Value] = {}
        #: When keys expire, nanoseconds since 1970.
        self.expiry: dict[bytes, int] = {}
        self.on_added: Callable[[bytes], object] = lambda _: None
        #: Whether there is no memory left, so that commands that add data are refused.
        self.is_full: Callable[[], bool] = lambda: False

    def snapshot(self) -> tuple[dict[bytes, Value], dict[bytes, int]]:
        """All keys as they are."""
        return copy.deepcopy(self.keys), dict(self.expiry)

    def restore(self, snapshot: tuple[dict[bytes, Value], dict[bytes, int]]) -> None:
        """Have the keys of a snapshot, and no others."""
        self.keys, self.expiry = copy.deepcopy(snapshot[0]), dict(snapshot[1])

    def _find(self, key: str | bytes) -> tuple[bytes, Value | None]:
        name = _raw(key)
        end = self.expiry.get(name)
        if end is not None and end <= self._now_ns():
            self._remove(name)
        return name, self.keys.get(name)

    def _remove(self, name: bytes) -> bool:
        self.expiry.pop(name, None)
        return self.keys.pop(name, None) is not None

    def _of(self, kind: type, key: str | bytes) -> tuple[bytes, Any]:
        name, found = self._find(key)
        if found is not None and not isinstance(found, kind):
            raise redis.ResponseError(_WRONG_TYPE)
        return name, found

    def _made(self, kind: type, key: str | bytes) -> Any:
        name, found = self._of(kind, key)
        if found is None:
            found = self.keys[name] = kind()
        return found

    def allot(self) -> None:
        """Refuse a command that adds data, if there is no memory left."""
        if self.is_full():
            raise redis.exceptions.OutOfMemoryError(_NO_MEMORY)

    def _without(self, name: bytes) -> None:
        """Remove what has become empty, as Redis does."""
        if not self.keys.get(name, True):
            self._remove(name)

    # any key

    def time(self) -> tuple[int, int]:
        """Seconds and microseconds since 1970."""
        return divmod(self._now_ns() // 1000, 1_000_000)

    def delete(self, *keys: str | bytes) -> int:
        """DEL."""
        return sum(self._remove(self._find(key)[0]) for key in keys)

    def expire(self, key: str | bytes, seconds: int) -> bool:
        """EXPIRE."""
        name, found = self._find(key)
        if found is None:
            return False
        self.expiry[name] = self._now_ns() + seconds * 10**9
        return True

    def ttl(self, key: str | bytes) -> int:
        """TTL, in whole seconds; only tests ask for it."""
        name, found = self._find(key)
        if found is None:
            return -2
        end = self.expiry.get(name)
        return -1 if end is None else round((end - self._now_ns()) / 1e9)

    def type(self, key: str | bytes) -> bytes:
        """TYPE."""
        found = self._find(key)[1]
        names = {bytes: b"string", Set: b"set", Hash: b"hash", Stream: b"stream", list: b"list"}
        return b"none" if found is None else names[type(found)]

    # strings

    def set(self, key: str | bytes, value: str | bytes | int, ex: int | None = None) -> bool:
        """SET, with EX."""
        self.allot()
        name = _raw(key)
        self.keys[name] = _raw(value)
        self.expiry.pop(name, None)
        if ex is not None:
            self.expiry[name] = self._now_ns() + ex * 10**9
        return True

    def get(self, key: str | bytes) -> bytes | None:
        """GET."""
        found: bytes | None = self._of(bytes, key)[1]
        return found

    def getrange(self, key: str | bytes, start: int, end: int) -> bytes:
        """GETRANGE, from the left."""
        return (self._of(bytes, key)[1] or b"")[start : end + 1]

    def incr(self, key: str | bytes) -> int:
        """INCR."""
        self.allot()
        name, found = self._of(bytes, key)
        text = b"0" if found is None else found
        digits = text.removeprefix(b"-")
        canonical = digits.isdigit() and (digits == b"0" or not digits.startswith(b"0"))
        if not canonical or text == b"-0" or not -_INTEGER_MOST - 1 <= int(text) <= _INTEGER_MOST:
            raise redis.ResponseError(_NO_INTEGER)
        if int(text) == _INTEGER_MOST:
            raise redis.ResponseError(_OVERFLOW)
        self.keys[name] = _raw(int(text) + 1)
        return int(text) + 1

    # sets

    def sadd(self, key: str | bytes, *members: str | bytes) -> int:
        """SADD."""
        self.allot()
        found = self._made(Set, key)
        before = len(found)
        found.update(dict.fromkeys(map(_raw, members)))
        return len(found) - before

    def srem(self, key: str | bytes, *members: str | bytes) -> int:
        """SREM."""
        name, found = self._of(Set, key)
        if found is None:
            return 0
        removed = [member for member in dict.fromkeys(map(_raw, members)) if member in found]
        for member in removed:
            del found[member]
        self._without(name)
        return len(removed)

    def sscan_iter(self, key: str | bytes, count: int | None = None) -> Iterator[bytes]:
        """SSCAN to its end."""
        return iter(list(self._of(Set, key)[1] or ()))

    # hashes

    def hset(self, key: str | bytes, mapping: Mapping[str | bytes, str | bytes]) -> int:
        """HSET."""
        self.allot()
        found = self._made(Hash, key)
        before = len(found)
        found.update({_raw(field): _raw(value) for field, value in mapping.items()})
        return len(found) - before

    def hget(self, key: str | bytes, field: str | bytes) -> bytes | None:
        """HGET."""
        found: bytes | None = (self._of(Hash, key)[1] or {}).get(_raw(field))
        return found

    def hstrlen(self, key: str | bytes, field: str | bytes) -> int:
        """HSTRLEN."""
        return len((self._of(Hash, key)[1] or {}).get(_raw(field), b""))

    # streams

    def xadd(
        self, key: str | bytes, fields: Mapping[bytes, bytes], nomkstream: bool = False
    ) -> bytes | None:
        """XADD with an id of the server's clock, and NOMKSTREAM."""
        self.allot()
        name, found = self._of(Stream, key)
        if found is None:
            if nomkstream:
                return None
            found = self.keys[name] = Stream()
        milliseconds, number = found.last
        now = self._now_ns() // 10**6
        found.last = (now, 0) if now > milliseconds else (milliseconds, number + 1)
        found[found.last] = dict(fields)
        self.on_added(name)
        return b"%d-%d" % found.last

    def xdel(self, key: str | bytes, *places: str | bytes) -> int:
        """XDEL."""
        found = self._of(Stream, key)[1]
        if found is None:
            return 0
        return sum(found.pop(_place(place), None) is not None for place in places)

    def xtrim(self, key: str | bytes, maxlen: int, approximate: bool = True) -> int:
        """XTRIM MAXLEN, exactly."""
        found = self._of(Stream, key)[1]
        excess = list(found or ())[: max(0, len(found or ()) - maxlen)]
        for place in excess:
            del found[place]
        return len(excess)

    def xinfo_stream(self, key: str | bytes) -> dict[str, Any]:
        """XINFO STREAM: its last id."""
        found = self._of(Stream, key)[1]
        if found is None:
            raise redis.ResponseError("no such key")
        return {"last-generated-id": b"%d-%d" % found.last}

    def xread(
        self, streams: Mapping[str, str], count: int | None = None, block: int | None = None
    ) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
        """XREAD of one stream."""
        ((key, after),) = streams.items()
        name, found = self._of(Stream, key)
        begin = _place(after)
        entries = [
            (b"%d-%d" % place, fields) for place, fields in (found or {}).items() if place > begin
        ][:count]
        return [(name, entries)] if entries else []

    # lists: queues of the broker

    def rpush(self, key: str | bytes, *values: bytes) -> int:
        """RPUSH."""
        self.allot()
        found = self._made(list, key)
        found.extend(values)
        self.on_added(_raw(key))
        return len(found)

    def lpop(self, key: str | bytes) -> bytes | None:
        """LPOP."""
        name, found = self._of(list, key)
        if not found:
            return None
        first: bytes = found.pop(0)
        self._without(name)
        return first


#: Name, arguments and keyword arguments.
Command = tuple[str, tuple[Any, ...], dict[str, Any]]


class Pipeline:
    """Commands that are sent together, and answered together."""

    def __init__(self, send: Callable[[list[Command]], list[Any]]) -> None:
        """`send` returns the answer of each command, errors among them."""
        self._send = send
        self._commands: list[Command] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **named: self._commands.append((name, args, named))

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send them; the first error is raised when all were answered."""
        answers = self._send(self._commands) if self._commands else []
        for answer in answers if raise_on_error else ():
            if isinstance(answer, redis.ResponseError):
                raise answer
        return answers


def play(server: Any, commands: Iterable[Command]) -> list[Any]:
    """The answer of each command in turn, errors among them; what a pipeline does."""
    answers: list[Any] = []
    for name, args, named in commands:
        try:
            answers.append(getattr(server, name)(*args, **named))
        except redis.ResponseError as error:
            answers.append(error)
    return answers
