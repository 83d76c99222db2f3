"""Reads and verifies the heartbeats of all workers in Redis, and counts the refused ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench import __version__
from osbench.common.errors import Untrusted
from osbench.common.ports import clock as time
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.wire import Wire
from osbench.common.text.escaping import decoded_text

#: Most names that are kept of workers whose heartbeats could not be verified.
UNVERIFIED_MOST = 100
#: State of a worker of another version of osbench, of which no more is known than who it is.
OTHER_VERSION = "other version"


class HeartbeatReader:
    """Reads and verifies the heartbeats of workers in Redis; remembers the last ones.

    Methods raise StoreUnreachable, StoreError.
    """

    def __init__(self, client: Client, signer: Signer) -> None:
        self._wire = Wire(client)
        self._signer = signer
        #: By name: the last heartbeat as read and as decoded (None if not verified), and when it
        #: last changed, monotonic seconds: most do not change between two polls.
        self._known: dict[str, tuple[bytes, Heartbeat | None, float]] = {}
        #: The names of all workers, as they were last listed.
        self._names: list[bytes] = []
        #: Heartbeats that could not be verified: since the beginning, and by the last `present`.
        self.refused = 0
        self.unverified = 0
        #: Names of the workers of the last `present` that could not be verified, at most
        #: `UNVERIFIED_MOST`.
        self.unverified_names: list[str] = []

    def present(self, *, relist: bool = True) -> list[Heartbeat]:
        """Read heartbeats; return all that are valid and fresh, sorted by name.

        If `relist`, reads the list of workers in Redis first, and removes names without a heartbeat
        from it. Otherwise only the names of the last list and known live workers are read. Updates
        `unverified` and its names.
        """
        if relist:
            self._names = self._wire.names()
        listed = self._names
        # known live workers are read even if somebody has emptied the set
        heard = {name for name, (_, beat, _) in self._known.items() if beat is not None}
        names = sorted(heard.union(map(decoded_text, listed)))
        found = self.of(names)
        unknown = [name for name in names if name in self._known and self._known[name][1] is None]
        self.unverified, self.unverified_names = len(unknown), unknown[:UNVERIFIED_MOST]
        gone = [one for one in listed if decoded_text(one) not in self._known]
        if relist:
            self._wire.unlist(gone)
        return [beat for beat in found if beat is not None]

    def of(self, incarnations: list[str]) -> list[Heartbeat | None]:
        """Read the heartbeat of each named worker, in the order of the names.

        None for a heartbeat that is missing, refused, or unchanged for more than `WORKER_TTL_S`
        seconds: Redis may keep an old one if its clock was set back, or if somebody wrote it again.
        Names that are not given are forgotten. A heartbeat that cannot be verified counts once in
        `refused`.
        """
        now = time.monotonic()
        records = self._wire.heartbeats(incarnations)
        known = {}
        for name, data in zip(incarnations, records, strict=True):
            if data is not None:
                before = self._known.get(name)
                if before is None or before[0] != data:
                    before = data, self._verified(name, data), now
                known[name] = before
        self._known = known
        fresh = {
            name: beat
            for name, (_, beat, changed) in known.items()
            if now - changed <= redis_keys.WORKER_TTL_S
        }
        return [fresh.get(name) for name in incarnations]

    def _verified(self, name: str, data: bytes) -> Heartbeat | None:
        try:
            beat = Heartbeat.parse(_readable(self._signer.verify(Heartbeat.KIND, data)))
            if beat.incarnation != name:
                raise Untrusted("the heartbeat of another worker")
        except Untrusted:
            self.refused += 1
            return None
        return beat


def _readable(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a verified heartbeat.

    If the worker has another version of osbench, only its identity is kept: its state is
    `OTHER_VERSION`, and its numbers are 0.
    """
    if body.get("version") == __version__:
        return body
    who = {name: body.get(name) for name in ("incarnation", "host", "pid", "label", "version")}
    return {**who, "beat": 0, "capacity": 0, "coroutines": 0, "state": OTHER_VERSION}
