"""The heartbeats of all workers in Redis: read, verified, and counted where they are refused."""

from __future__ import annotations

from typing import Any, cast

from osbench.common.errors import Untrusted
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client, reached


class HeartbeatReader:
    """Reads what workers say of themselves. Methods raise StoreAway, StoreError."""

    def __init__(self, client: Client, sealer: Sealer) -> None:
        self._client = client
        self._sealer = sealer
        #: Heartbeats that could not be verified: in all, and when all were last read.
        self.refused = 0
        self.unverified = 0

    def present(self) -> list[tuple[Heartbeat, str]]:
        """All workers with a valid heartbeat, and the run that holds each or ""."""
        self.unverified = 0
        with reached():
            listed = cast(set[bytes], self._client.smembers(redis_keys.WORKERS))
            names = sorted(name.decode() for name in listed)
            if not names:
                return []
            beats = cast(list[Any], self._client.mget(map(redis_keys.worker, names)))
            holders = cast(list[Any], self._client.mget(map(redis_keys.busy, names)))
            gone = [name for name, data in zip(names, beats, strict=True) if data is None]
            if gone:
                self._client.srem(redis_keys.WORKERS, *gone)
        found = []
        for data, holder in zip(beats, holders, strict=True):
            if data is None:
                continue
            beat = self._verified(data)
            if beat is None:
                self.unverified += 1
            else:
                found.append((beat, holder.decode() if holder else ""))
        return found

    def of(self, incarnations: list[str]) -> list[Heartbeat | None]:
        """The heartbeat of each worker, None where there is none that can be verified."""
        with reached():
            beats = cast(list[Any], self._client.mget(map(redis_keys.worker, incarnations)))
        return [self._verified(data) if data is not None else None for data in beats]

    def _verified(self, data: bytes) -> Heartbeat | None:
        try:
            return Heartbeat.parse(self._sealer.open(Heartbeat.KIND, data))
        except Untrusted:
            self.refused += 1
            return None
