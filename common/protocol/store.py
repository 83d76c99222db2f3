"""The state of a run in Redis, behind a small interface that also has an in-memory version.

`RedisStore` and `MemoryStore` pass the same contract tests; the protocol's property tests run
the real state machines over `MemoryStore`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from osbench.common.protocol import redis_keys
from osbench.common.protocol.redis_client import Client, reached

#: Checks epoch and server run id, then claims each batch for the caller; returns the owners.
CLAIM = """
local head = redis.call('HMGET', KEYS[1], 'epoch', 'boot')
if head[1] ~= ARGV[1] or head[2] ~= ARGV[2] then
  return false
end
local owners = {}
for i = 4, #ARGV do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[3]) == 1 then
    owners[i - 3] = ARGV[3]
  else
    owners[i - 3] = redis.call('HGET', KEYS[2], ARGV[i])
  end
end
return owners
"""

#: Written to the claims first, so that an expiry can be set on them; real ids begin with 1.
NO_BATCH = "0"

#: Keys that a run has once, in the order of `osbench.common.protocol.redis_keys`.
PARTS = ("head", "claims", "results", "specs")
#: How often the coordinator renews their expiry, seconds.
RENEW_S = 600.0


class Store(Protocol):
    """Claims, results and control records of one run."""

    def open(self, head: Mapping[str, str]) -> None:
        """Write the head of the run (coordinator)."""

    def head(self) -> dict[str, str]:
        """The head of the run; empty where the run does not exist."""

    def claim(
        self, epoch: str, server_run_id: str, incarnation: str, batches: Sequence[int]
    ) -> list[str] | None:
        """Claim batches. Returns the owner of each, or None if epoch or server run id differ."""

    def take_away(self, batches: Sequence[int]) -> list[bool]:
        """Revoke batches; True for a batch that was not claimed, so that no worker starts it."""

    def append(self, entry: bytes) -> None:
        """Add an entry to the result stream; does nothing where the run does not exist."""

    def read(self, after: str, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        """Entries after position `after` ("0" is the beginning), waiting for the first."""

    def trim(self, through: str) -> None:
        """Drop entries up to and including a position."""

    def control(self, incarnation: str) -> bytes | None:
        """The control record of a worker."""

    def put_controls(self, records: Mapping[str, bytes]) -> None:
        """Write control records by incarnation."""

    def specification(self, workload: int) -> bytes | None:
        """The encrypted specification of a workload."""

    def put_specification(self, workload: int, data: bytes) -> None:
        """Write the encrypted specification of a workload."""

    def close(self, incarnations: Sequence[str]) -> None:
        """Remove all keys of the run."""


class RedisStore:
    """The store of a run in Redis. All methods raise StoreAway and StoreError."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run = run_id
        self._claim = client.register_script(CLAIM)
        self._renewed_at = float("-inf")

    def _key(self, part: str) -> str:
        return redis_keys.run(self._run, part)

    def open(self, head: Mapping[str, str]) -> None:
        results = self._key("results")
        with reached():
            pipe = self._client.pipeline(transaction=True)
            pipe.hset(self._key("head"), mapping=cast(Any, dict(head)))
            pipe.hsetnx(self._key("claims"), NO_BATCH, redis_keys.REVOKED)
            # an empty stream: workers add to it and never create it, so that a worker that
            # reconnects after the end of the run leaves no key
            if not self._client.exists(results):
                pipe.xadd(results, {b"d": b""})
                pipe.xtrim(results, maxlen=0, approximate=False)
            self._renew(pipe)
            pipe.execute()

    def _renew(self, pipe: Any) -> None:
        now = time.monotonic()
        if now - self._renewed_at < RENEW_S:
            return
        self._renewed_at = now
        for part in PARTS:
            pipe.expire(self._key(part), redis_keys.RUN_TTL_S)

    def head(self) -> dict[str, str]:
        with reached():
            found = cast(dict[bytes, bytes], self._client.hgetall(self._key("head")))
        return {name.decode(): value.decode() for name, value in found.items()}

    def claim(
        self, epoch: str, server_run_id: str, incarnation: str, batches: Sequence[int]
    ) -> list[str] | None:
        with reached():
            owners = self._claim(
                keys=[self._key("head"), self._key("claims")],
                args=[epoch, server_run_id, incarnation, *batches],
            )
        return None if owners is None else [owner.decode() for owner in owners]

    def take_away(self, batches: Sequence[int]) -> list[bool]:
        with reached():
            pipe = self._client.pipeline(transaction=False)
            for batch in batches:
                pipe.hsetnx(self._key("claims"), str(batch), redis_keys.REVOKED)
            # when repeated after a lost reply, a batch that we revoked still counts as revoked
            for batch in batches:
                pipe.hget(self._key("claims"), str(batch))
            answers = pipe.execute()
        return [owner == redis_keys.REVOKED for owner in answers[len(batches) : 2 * len(batches)]]

    def append(self, entry: bytes) -> None:
        with reached():
            self._client.xadd(self._key("results"), {b"d": entry}, nomkstream=True)

    def read(self, after: str, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        with reached():
            block = max(1, int(wait_s * 1000)) if wait_s > 0 else None
            answer = cast(
                Any, self._client.xread({self._key("results"): after}, count=limit, block=block)
            )
        if not answer:
            return []
        # RESP3 returns a map of streams, RESP2 a list of pairs
        entries = next(iter(answer.values()))[0] if isinstance(answer, dict) else answer[0][1]
        return [(place.decode(), values[b"d"]) for place, values in entries]

    def trim(self, through: str) -> None:
        milliseconds, _, serial = through.partition("-")
        with reached():
            pipe = self._client.pipeline(transaction=False)
            pipe.xtrim(
                self._key("results"), minid=f"{milliseconds}-{int(serial) + 1}", approximate=False
            )
            self._renew(pipe)
            pipe.execute()

    def control(self, incarnation: str) -> bytes | None:
        return self.control_and_holder(incarnation)[0]

    def control_and_holder(self, incarnation: str) -> tuple[bytes | None, str]:
        """The control record of a worker, and the id of the run that holds it or ""."""
        wanted = [self._key(f"ctl:{incarnation}"), redis_keys.busy(incarnation)]
        with reached():
            record, holder = cast(list[bytes | None], self._client.mget(wanted))
        return record, holder.decode() if holder is not None else ""

    def put_controls(self, records: Mapping[str, bytes]) -> None:
        with reached():
            pipe = self._client.pipeline(transaction=False)
            for incarnation, data in records.items():
                pipe.set(self._key(f"ctl:{incarnation}"), data, ex=redis_keys.RUN_TTL_S)
            pipe.execute()

    def specification(self, workload: int) -> bytes | None:
        with reached():
            return cast(bytes | None, self._client.hget(self._key("specs"), str(workload)))

    def put_specification(self, workload: int, data: bytes) -> None:
        with reached():
            pipe = self._client.pipeline(transaction=False)
            pipe.hset(self._key("specs"), str(workload), data)
            pipe.expire(self._key("specs"), redis_keys.RUN_TTL_S)
            pipe.execute()

    def close(self, incarnations: Sequence[str]) -> None:
        controls = (f"ctl:{incarnation}" for incarnation in incarnations)
        with reached():
            self._client.delete(*(self._key(part) for part in (*PARTS, *controls)))


class MemoryStore:
    """A store in the memory of one process, for tests."""

    def __init__(self) -> None:
        self._head: dict[str, str] = {}
        self._claims: dict[int, str] = {}
        self._entries: list[tuple[int, bytes]] = []
        self._last = 0
        self._controls: dict[str, bytes] = {}
        self._specs: dict[int, bytes] = {}

    def open(self, head: Mapping[str, str]) -> None:
        self._head.update(head)

    def head(self) -> dict[str, str]:
        return dict(self._head)

    def claim(
        self, epoch: str, server_run_id: str, incarnation: str, batches: Sequence[int]
    ) -> list[str] | None:
        if self._head.get("epoch") != epoch or self._head.get("boot") != server_run_id:
            return None
        return [self._claims.setdefault(batch, incarnation) for batch in batches]

    def take_away(self, batches: Sequence[int]) -> list[bool]:
        revoked = redis_keys.REVOKED.decode()
        return [self._claims.setdefault(batch, revoked) == revoked for batch in batches]

    def append(self, entry: bytes) -> None:
        if self._head:
            self._last += 1
            self._entries.append((self._last, entry))

    def read(self, after: str, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        floor = int(after.partition("-")[0])
        found = [(f"{at}-0", entry) for at, entry in self._entries if at > floor]
        return found[:limit]

    def trim(self, through: str) -> None:
        floor = int(through.partition("-")[0])
        self._entries = [(at, entry) for at, entry in self._entries if at > floor]

    def control(self, incarnation: str) -> bytes | None:
        return self._controls.get(incarnation)

    def put_controls(self, records: Mapping[str, bytes]) -> None:
        self._controls.update(records)

    def specification(self, workload: int) -> bytes | None:
        return self._specs.get(workload)

    def put_specification(self, workload: int, data: bytes) -> None:
        self._specs[workload] = data

    def close(self, incarnations: Sequence[str]) -> None:
        self.__init__()  # type: ignore[misc]
