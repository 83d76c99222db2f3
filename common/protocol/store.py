"""The state of a run in Redis, behind a small interface that also has an in-memory version.

`RedisStore` and `MemoryStore` pass the same contract tests. All that stands here is bytes of an
unknown sender until its seal was verified. All of it may vanish or be put back at any time: the
coordinator calls `tend` and writes its records again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

import redis

from osbench.common.escaping import decoded
from osbench.common.ports import clock as time
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import size_of
from osbench.common.protocol.messages import Specification
from osbench.common.protocol.redis_client import Client, reached

#: Most bytes that are read of a heartbeat, an offer or a control record.
RECORD_BYTES = 1 << 20
#: Keys that a run has once, in the order of `osbench.common.protocol.redis_keys`.
PARTS = ("results", "specs", "turns")
#: How often the coordinator renews their expiry, seconds.
RENEW_S = 600.0
#: An entry id this many milliseconds in the future would keep others from adding entries.
FUTURE_MS = 24 * 3600 * 1000
_WRONG_TYPE = "WRONGTYPE"


class Store(Protocol):
    """Result blocks, specifications and control records of one run."""

    def tend(self) -> int:
        """Make the result stream where it is missing or unusable (coordinator).

        Returns how often this was called, by a count that the store keeps: one that does not grow
        shows that the store has lost something.
        """

    def append(self, entry: bytes, *, instead_of: str = "") -> str:
        """Add an entry to the results and remove an earlier one, where that is still there.

        Returns the id of the entry; does nothing and returns "" where the run does not exist.
        """

    def read(self, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        """The oldest entries with their ids, waiting for the first."""

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries."""

    def control(self, membership: str) -> bytes | None:
        """The control record of a membership."""

    def put_controls(self, records: Mapping[str, bytes], *, over: Iterable[str] = ()) -> None:
        """Write control records by membership; those of `over` expire soon."""

    def specification(self, workload: int) -> bytes | None:
        """The encrypted specification of a workload; None where there is none, or a larger one."""

    def put_specifications(self, records: Mapping[int, bytes]) -> None:
        """Write encrypted specifications by workload."""

    def close(self) -> None:
        """Remove the keys that the run has once.

        Control records expire: a worker that has left may still have to read that its last blocks
        are on disk, and would keep them for days.
        """


def read_records(client: Client, keys: Sequence[str]) -> list[bytes | None]:
    """The first `RECORD_BYTES` of some string keys; None where one is missing or no string.

    Raises StoreAway, StoreError.
    """
    if not keys:
        return []
    with reached(client):
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.getrange(key, 0, RECORD_BYTES)
        found = pipe.execute(raise_on_error=False)
        for answer in found:
            if isinstance(answer, Exception) and not wrong_type(answer):
                raise answer
    return [answer if isinstance(answer, bytes) and answer else None for answer in found]


def wrong_type(error: object) -> bool:
    """Whether an answer of Redis says that a key holds a value of another type."""
    return isinstance(error, redis.ResponseError) and str(error).startswith(_WRONG_TYPE)


class RedisStore:
    """The store of a run in Redis. All methods raise StoreAway and StoreError."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run = run_id
        self._renewed_at = float("-inf")

    def _key(self, part: str) -> str:
        return redis_keys.run(self._run, part)

    def tend(self) -> int:
        results = self._key("results")
        with reached(self._client):
            turn = self._turn()
            if not self._usable(results):
                pipe = self._client.pipeline(transaction=True)
                # what was in it is sent again by those who are not acknowledged
                pipe.delete(results)
                pipe.xadd(results, {b"d": b""})
                pipe.xtrim(results, maxlen=0, approximate=False)
                pipe.expire(results, redis_keys.RUN_TTL_S)
                pipe.execute()
            now = time.monotonic()
            if now - self._renewed_at >= RENEW_S:
                self._renewed_at = now
                for part in PARTS:
                    self._client.expire(self._key(part), redis_keys.RUN_TTL_S)
        return turn

    def _turn(self) -> int:
        turns = self._key("turns")
        try:
            return self._client.incr(turns)
        except redis.ResponseError as error:
            if not str(error).startswith((_WRONG_TYPE, "value is not an integer", "ERR value")):
                raise
            self._client.delete(turns)
            return 0

    def _usable(self, results: str) -> bool:
        try:
            info = self._client.xinfo_stream(results)
        except redis.ResponseError as error:
            if str(error).startswith(("no such key", "ERR no such key", _WRONG_TYPE)):
                return False
            raise
        last = cast(bytes | str, info["last-generated-id"])
        text = decoded(last) if isinstance(last, bytes) else last
        seconds, _ = self._client.time()
        return int(text.partition("-")[0]) < seconds * 1000 + FUTURE_MS

    def append(self, entry: bytes, *, instead_of: str = "") -> str:
        results = self._key("results")
        with reached(self._client):
            # added first: what is lost between the two commands leaves a copy more, not none
            pipe = self._client.pipeline(transaction=False)
            pipe.xadd(results, {b"d": entry}, nomkstream=True)
            if instead_of:
                pipe.xdel(results, instead_of)
            place = cast(bytes | None, pipe.execute()[0])
        return decoded(place) if place else ""

    def read(self, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        block = max(1, int(wait_s * 1000)) if wait_s > 0 else None
        key = self._key("results")
        with reached(self._client):
            try:
                answer = cast(Any, self._client.xread({key: "0"}, count=limit, block=block))
            except redis.ResponseError as error:
                if not wrong_type(error):
                    raise
                answer = None
        if not answer:
            return []
        # RESP3 returns a map of streams, RESP2 a list of pairs
        entries = next(iter(answer.values()))[0] if isinstance(answer, dict) else answer[0][1]
        return [(decoded(place), (values or {}).get(b"d", b"")) for place, values in entries]

    def delete(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        with reached(self._client):
            try:
                self._client.xdel(self._key("results"), *ids)
            except redis.ResponseError as error:
                # somebody put another value there: they are gone, and `tend` makes the stream anew
                if not wrong_type(error):
                    raise

    def control(self, membership: str) -> bytes | None:
        return read_records(self._client, [redis_keys.control(self._run, membership)])[0]

    def put_controls(self, records: Mapping[str, bytes], *, over: Iterable[str] = ()) -> None:
        ending = set(over)
        with reached(self._client):
            pipe = self._client.pipeline(transaction=False)
            for membership, data in records.items():
                last_s = redis_keys.OVER_TTL_S if membership in ending else redis_keys.RUN_TTL_S
                pipe.set(redis_keys.control(self._run, membership), data, ex=last_s)
            pipe.execute()

    def specification(self, workload: int) -> bytes | None:
        key, field = self._key("specs"), str(workload)
        with reached(self._client):
            try:
                # who writes to Redis may have put anything there
                if self._client.hstrlen(key, field) > size_of(Specification.KIND):
                    return None
                return cast(bytes | None, self._client.hget(key, field))
            except redis.ResponseError as error:
                if not wrong_type(error):
                    raise
                return None

    def put_specifications(self, records: Mapping[int, bytes]) -> None:
        if not records:
            return
        specs = self._key("specs")
        mapping = cast(Any, {str(workload): data for workload, data in records.items()})
        with reached(self._client):
            try:
                self._client.hset(specs, mapping=mapping)
            except redis.ResponseError as error:
                if not wrong_type(error):
                    raise
                self._client.delete(specs)
                self._client.hset(specs, mapping=mapping)
            self._client.expire(specs, redis_keys.RUN_TTL_S)

    def close(self) -> None:
        with reached(self._client):
            self._client.delete(*map(self._key, PARTS))


class MemoryStore:
    """A store in the memory of one process, for tests."""

    def __init__(self) -> None:
        self._entries: dict[int, bytes] | None = None
        self._last = self._turns = 0
        self._controls: dict[str, bytes] = {}
        self._specs: dict[int, bytes] = {}

    def tend(self) -> int:
        if self._entries is None:
            self._entries = {}
        self._turns += 1
        return self._turns

    def append(self, entry: bytes, *, instead_of: str = "") -> str:
        if self._entries is None:
            return ""
        self._last += 1
        self._entries[self._last] = entry
        if instead_of:
            self.delete([instead_of])
        return f"{self._last}-0"

    def read(self, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        found = sorted((self._entries or {}).items())
        return [(f"{at}-0", entry) for at, entry in found[:limit]]

    def delete(self, ids: Sequence[str]) -> None:
        for one in ids:
            (self._entries or {}).pop(int(one.partition("-")[0]), None)

    def control(self, membership: str) -> bytes | None:
        return self._controls.get(membership)

    def put_controls(self, records: Mapping[str, bytes], *, over: Iterable[str] = ()) -> None:
        self._controls.update(records)

    def specification(self, workload: int) -> bytes | None:
        return self._specs.get(workload)

    def put_specifications(self, records: Mapping[int, bytes]) -> None:
        self._specs.update(records)

    def close(self) -> None:
        self._entries = None
        self._specs.clear()
