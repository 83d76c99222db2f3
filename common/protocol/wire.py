"""Heartbeats, offers and queues: how workers and coordinators find each other in Redis.

The keys of a run are in `store.py`; no other module gives Redis commands for a run. Any bytes read
from Redis are untrusted until their signature is verified. A key of a wrong Redis type is removed
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import redis

from osbench.common.protocol import redis_keys
from osbench.common.protocol.redis_client import Client, translating_errors

#: Most bytes that are read of a heartbeat, an offer or a control record.
RECORD_BYTES = 1 << 20
#: Names of workers that are read, at most: who can write to Redis could add any number.
NAMES_MOST = 10_000
_WRONG_TYPE = "WRONGTYPE"


def wrong_type(error: object) -> bool:
    """Return whether an error of Redis says that a key holds a value of another type."""
    return isinstance(error, redis.ResponseError) and str(error).startswith(_WRONG_TYPE)


class Wire:
    """Access to the Redis keys of worker processes: heartbeats, offers, queues, the set of names.

    Methods raise StoreUnreachable if Redis is unreachable, StoreError if it refuses a command.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def records(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of string keys, in the order of `keys`, not verified.

        None for a missing or empty key or a key of another type. A value longer than `RECORD_BYTES`
        is cut to one byte more, so that it is refused as too large.
        """
        if not keys:
            return []
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.getrange(key, 0, RECORD_BYTES)
            found = pipe.execute(raise_on_error=False)
            for response in found:
                if isinstance(response, Exception) and not wrong_type(response):
                    raise response
        return [
            response if isinstance(response, bytes) and response else None for response in found
        ]

    def ping(self) -> None:
        """Check that Redis responds. Raises StoreUnreachable if it does not."""
        with translating_errors(self._client):
            self._client.ping()

    def time_us(self) -> int:
        """Return the time of Redis, microseconds since 1970."""
        with translating_errors(self._client):
            seconds, micros = self._client.time()
        return seconds * 1_000_000 + micros

    # what a worker process writes

    def beat(self, incarnation: str, heartbeat: bytes, *, listed: bool) -> bool:
        """Write a heartbeat, which expires; if `listed`, add the worker to the set of all workers.

        Returns False if the set's key held another type: it is deleted, and the caller adds the
        worker with the next heartbeat. Else True.
        """
        unspoilt = True
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            pipe.set(redis_keys.worker(incarnation), heartbeat, ex=redis_keys.WORKER_TTL_S)
            if listed:
                pipe.sadd(redis_keys.WORKERS, incarnation)
            for response in pipe.execute(raise_on_error=False):
                if wrong_type(response):
                    self._client.delete(redis_keys.WORKERS)
                    unspoilt = False
                elif isinstance(response, Exception):
                    raise response
        return unspoilt

    def repair_queue(self, incarnation: str) -> None:
        """Delete a worker process's queue key on a Redis broker if its value is not a list."""
        key = _queue(incarnation)
        with translating_errors(self._client):
            if self._client.type(key) not in (b"list", b"none"):
                self._client.delete(key)

    # what a coordinator reads and writes

    def names(self) -> list[bytes]:
        """Return at most `NAMES_MOST` incarnations from the set of all workers, not verified.

        If the key holds another type, deletes it and returns [].
        """
        with translating_errors(self._client):
            try:
                names = self._client.sscan_iter(redis_keys.WORKERS, count=1000)
                return list(islice(names, NAMES_MOST))
            except redis.ResponseError as error:
                if not wrong_type(error):
                    raise
                # somebody put another value there; the workers add themselves again
                self._client.delete(redis_keys.WORKERS)
                return []

    def unlist(self, names: Sequence[bytes]) -> None:
        """Remove incarnations from the set of all workers; missing ones are ignored."""
        if names:
            with translating_errors(self._client):
                self._client.srem(redis_keys.WORKERS, *names)

    def heartbeats(self, incarnations: Iterable[str]) -> list[bytes | None]:
        """Return the workers' signed heartbeats, in order, not verified; None if expired."""
        return self.records([redis_keys.worker(name) for name in incarnations])

    def offer(self, offers: Mapping[str, bytes]) -> None:
        """Write signed offers, by the worker's incarnation; they expire after OFFER_TTL_S s."""
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            for incarnation, data in offers.items():
                pipe.set(redis_keys.offer(incarnation), data, ex=redis_keys.OFFER_TTL_S)
            pipe.execute()

    def withdraw(self, incarnations: Iterable[str]) -> None:
        """Delete the offers to the workers with these incarnations; missing ones are ignored."""
        keys = [redis_keys.offer(incarnation) for incarnation in incarnations]
        if keys:
            with translating_errors(self._client):
                self._client.delete(*keys)

    def forget(self, incarnation: str) -> None:
        """Delete all keys of an ended worker process, also its queue on a Redis broker."""
        with translating_errors(self._client):
            pipe = self._client.pipeline(transaction=False)
            pipe.delete(
                redis_keys.worker(incarnation), redis_keys.offer(incarnation), _queue(incarnation)
            )
            pipe.srem(redis_keys.WORKERS, incarnation)
            pipe.execute()


def _queue(incarnation: str) -> str:
    return redis_keys.PREFIX + redis_keys.queue(incarnation)
