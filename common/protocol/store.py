"""The state of a run in Redis.

Any bytes read here are untrusted until their signature is verified. Redis may lose them or restore
older ones at any time, so the coordinator calls `tend` and writes its records again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import redis

from osbench.common.ports import clock as time
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import size_of
from osbench.common.protocol.messages import Specification
from osbench.common.protocol.redis_client import Client, translating_errors
from osbench.common.protocol.wire import Wire, wrong_type
from osbench.common.text.escaping import decoded_text

#: Keys that a run has once, in the order of `osbench.common.protocol.redis_keys`.
PARTS = ("results", "specs", "turns")
#: How often the coordinator renews their expiry, seconds.
RENEW_S = 600.0
#: An entry id this many milliseconds in the future would keep others from adding entries.
FUTURE_MS = 24 * 3600 * 1000
#: Beginnings of the errors of INCR for a value that it cannot raise.
_NO_COUNT = ("WRONGTYPE", "value is not an integer", "increment or decrement would overflow")


class Store:
    """Access to the Redis keys of one run: result stream, specifications and control records.

    Methods raise StoreUnreachable if Redis is unreachable, StoreError if it refuses a command.
    """

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run = run_id
        self._renewed_at = float("-inf")

    def _key(self, part: str) -> str:
        return redis_keys.run(self._run, part)

    def tend(self) -> int:
        """Create the result stream if it is missing or unusable; renew the expiry of keys if due.

        The coordinator calls it again and again. Returns a counter in Redis that each call
        increments: if it has not grown, Redis has lost data. An unusable stream is deleted, with
        its entries.
        """
        results = self._key("results")
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            pipe.incr(self._key("turns"))
            pipe.xinfo_stream(results)
            pipe.time()
            turn, info, clock = pipe.execute(raise_on_error=False)
            if isinstance(turn, Exception):
                turn = self._restart_turns(turn)
            if not _is_usable(info, clock):
                pipe = self._client.pipeline(transaction=True)
                # its entries are sent again by workers that got no acknowledgement
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
        return int(turn)

    def _restart_turns(self, error: Exception) -> int:
        if not str(error).removeprefix("ERR ").startswith(_NO_COUNT):
            raise error
        self._client.delete(self._key("turns"))
        return 0

    def append(self, entry: bytes, *, instead_of: str = "") -> str:
        """Add an entry to the result stream, then remove the entry with id `instead_of` ("": none).

        Returns the id of the new entry. If the stream does not exist, adds nothing and returns "".
        """
        results = self._key("results")
        with translating_errors(self._client):
            # added first: what is lost between the two commands leaves a copy more, not none
            pipe = self._client.pipeline(transaction=False)
            pipe.xadd(results, {b"d": entry}, nomkstream=True)
            if instead_of:
                pipe.xdel(results, instead_of)
            place = cast(bytes | None, pipe.execute()[0])
        return decoded_text(place) if place else ""

    def read(self, wait_s: float, limit: int) -> list[tuple[str, bytes]]:
        """Return the oldest entries of the result stream as pairs (id, bytes), at most `limit`.

        Waits at most `wait_s` seconds for the first; 0 does not wait. The entries stay in the
        stream. Empty if there are none, or the key has no stream.
        """
        block = max(1, int(wait_s * 1000)) if wait_s > 0 else None
        key = self._key("results")
        with translating_errors(self._client):
            try:
                response = cast(Any, self._client.xread({key: "0"}, count=limit, block=block))
            except redis.ResponseError as error:
                if not wrong_type(error):
                    raise
                response = None
        if not response:
            return []
        # RESP3 returns a map of streams, RESP2 a list of pairs
        entries = next(iter(response.values()))[0] if isinstance(response, dict) else response[0][1]
        return [(decoded_text(place), (values or {}).get(b"d", b"")) for place, values in entries]

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries from the result stream by their ids; missing ones are ignored."""
        if not ids:
            return
        with translating_errors(self._client):
            try:
                self._client.xdel(self._key("results"), *ids)
            except redis.ResponseError as error:
                # somebody put another value there: they are gone, and `tend` makes the stream anew
                if not wrong_type(error):
                    raise

    def control(self, membership: str) -> bytes | None:
        """Return a membership's signed control record, not verified; None if missing."""
        return Wire(self._client).records([redis_keys.control(self._run, membership)])[0]

    def put_controls(self, records: Mapping[str, bytes]) -> None:
        """Write signed control records, by membership; each expires after RUN_TTL_S s."""
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            for membership, data in records.items():
                pipe.set(redis_keys.control(self._run, membership), data, ex=redis_keys.RUN_TTL_S)
            pipe.execute()

    def specification(self, workload: int) -> bytes | None:
        """Return a workload's encrypted specification; None if missing, too large or no hash."""
        key, field = self._key("specs"), str(workload)
        with translating_errors(self._client):
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
        """Write encrypted specifications, given by workload number; they expire after RUN_TTL_S.

        A value of another type at their key is deleted first.
        """
        if not records:
            return
        specs = self._key("specs")
        mapping = cast(Any, {str(workload): data for workload, data in records.items()})
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            pipe.hset(specs, mapping=mapping)
            pipe.expire(specs, redis_keys.RUN_TTL_S)
            (wrong, *_) = pipe.execute(raise_on_error=False)
            if isinstance(wrong, Exception):
                if not wrong_type(wrong):
                    raise wrong
                self._client.delete(specs)
                self._client.hset(specs, mapping=mapping)
                self._client.expire(specs, redis_keys.RUN_TTL_S)

    def close(self, left: Iterable[str] = ()) -> None:
        """Delete the keys of the run, except control records, which expire by themselves.

        Records of memberships in `left`, which have ended, expire after OVER_TTL_S, others after
        RUN_TTL_S: an unreachable worker may learn only hours later that the run is over.
        """
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            for membership in left:
                pipe.expire(redis_keys.control(self._run, membership), redis_keys.OVER_TTL_S)
            pipe.delete(*map(self._key, PARTS))
            pipe.execute()


def _is_usable(info: Any, clock: Any) -> bool:
    """Return whether the replies show a stream that takes entries; raise other errors."""
    if isinstance(info, redis.ResponseError) and (
        wrong_type(info) or str(info).startswith(("no such key", "ERR no such key"))
    ):
        return False
    for reply in (info, clock):
        if isinstance(reply, Exception):
            raise reply
    last = info["last-generated-id"]
    text = decoded_text(last) if isinstance(last, bytes) else last
    return bool(int(text.partition("-")[0]) < clock[0] * 1000 + FUTURE_MS)
