"""The coordinator's side of the wire: batches go out by Celery, everything else through Redis."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from osbench.common.errors import StoreUnreachable, Untrusted
from osbench.common.ports import clock as time
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.messages import Batch, Block, Control, Offer, Specification, Will
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.store import Store
from osbench.common.protocol.wire import Wire

if TYPE_CHECKING:
    from osbench.coordinator.load.transport.publisher import Publisher

LOG = logging.getLogger(__name__)

#: Result entries read at once.
READ_LIMIT = 32


class Channel:
    """The coordinator's messages with the workers of one run, through Redis and the broker.

    Signs outgoing messages; verifies incoming ones and counts refused ones.
    """

    def __init__(
        self,
        *,
        store: Store,
        client: Client,
        signer: Signer,
        vault: Vault,
        publisher: Callable[[], Publisher],
        run_id: str,
    ) -> None:
        """`publisher` makes the publisher in `ready`, or with the first batch; it takes a while."""
        self._store = store
        self._wire = Wire(client)
        self.run_id = run_id
        self._signer = signer
        self._vault = vault
        self._make_publisher = publisher
        #: Signed specifications by workload.
        self._specifications: dict[int, bytes] = {}
        #: The last read returned as many entries as allowed, so there may be more.
        self.behind = False
        #: How often Redis had lost data: it was restarted, rolled back or emptied.
        self.rollbacks = 0
        self._turn = 0
        #: Entries that were refused, by reason.
        self.refusals: Counter[str] = Counter()
        #: When the broker first refused a message, monotonic seconds; None while it accepts them.
        self._refused_since: float | None = None

    @cached_property
    def _publisher(self) -> Publisher:
        return self._make_publisher()

    def ready(self) -> None:
        """Connect the publisher, so that the first batch is sent at once. Errors: see `publish`."""
        self.publish(())

    def refuse(self, reason: str) -> None:
        """Count an entry of the result stream that cannot be used, under `reason`."""
        self.refusals[reason] += 1

    @property
    def refused(self) -> int:
        """Number of entries that were refused: not verified, malformed, or of another run."""
        return sum(self.refusals.values())

    @property
    def broker_away_s(self) -> float:
        """Seconds since the broker first refused a message; 0.0 unless the last send failed."""
        return 0.0 if self._refused_since is None else time.monotonic() - self._refused_since

    def tend(self) -> None:
        """Create the result stream in Redis if missing or unusable; renew the expiry of keys.

        To be called again and again. If Redis has lost data since the last call, counts it in
        `rollbacks` and logs a warning. Raises StoreUnreachable, StoreError.
        """
        turn = self._store.tend()
        if turn <= self._turn:
            self.rollbacks += 1
            LOG.warning("Redis has lost data of the run; the run continues")
        self._turn = turn

    def close(self, offered: Iterable[str], left: Iterable[str]) -> None:
        """Delete the run's results and specifications from Redis, and its offers to workers.

        `offered`: incarnations of the workers. `left`: ids of memberships that have ended, whose
        control records expire sooner. Raises StoreUnreachable, StoreError.
        """
        self._store.close(left)
        self._wire.withdraw(offered)

    def specify(self, specification: Specification) -> bytes:
        """Write a specification to Redis, encrypted and signed; return its SHA-256 digest.

        The digest is of the signed bytes. Keeps them in memory for `restate`. Raises
        StoreUnreachable, StoreError.
        """
        token = self._vault.encrypt(specification.body())
        data = self._signer.sign(Specification.KIND, {"vault": token})
        self._specifications[specification.workload] = data
        self.restate([specification.workload])
        return hashlib.sha256(data).digest()

    def restate(self, workloads: Iterable[int]) -> None:
        """Write the specifications of `workloads` (numbers) to Redis again: it may have lost them.

        Raises StoreUnreachable, StoreError; KeyError if `specify` was not called for a workload.
        """
        self._store.put_specifications(
            {number: self._specifications[number] for number in workloads}
        )

    def publish(self, batches: Iterable[Batch]) -> None:
        """Sign batches and send each to the queue of its worker, in one go if Redis is the broker.

        Raises StoreUnreachable if the broker does not take them: some may have been sent then.
        Raises StoreError if the broker denies permission.
        """
        signed = (
            (batch.incarnation, self._signer.sign(Batch.KIND, batch.body())) for batch in batches
        )
        try:
            self._publisher.send(signed)
        except StoreUnreachable:
            self._refused_since = self._refused_since or time.monotonic()
            raise
        self._refused_since = None

    def offer(self, offers: Iterable[Offer]) -> None:
        """Sign offers and write them to Redis; they expire after `OFFER_TTL_S` seconds.

        Raises StoreUnreachable, StoreError.
        """
        self._wire.offer(
            {one.incarnation: self._signer.sign(Offer.KIND, one.body()) for one in offers}
        )

    def control(self, records: Mapping[str, Control]) -> None:
        """Sign control records and write them to Redis by membership; does nothing without records.

        Raises StoreUnreachable, StoreError.
        """
        if records:
            self._store.put_controls(
                {
                    mid: self._signer.sign(Control.KIND, record.body())
                    for mid, record in records.items()
                }
            )

    def read(self, wait_s: float) -> list[tuple[str, Block | Will | None]]:
        """Return the oldest messages of the result stream with their ids, at most `READ_LIMIT`.

        Waits up to `wait_s` seconds for the first. None instead of a message: it was refused and
        counted. Messages stay in the stream until `delete`. Sets `behind` if there may be more.
        Raises StoreUnreachable, StoreError.
        """
        entries = self._store.read(wait_s, READ_LIMIT)
        self.behind = len(entries) == READ_LIMIT
        return [(place, self._verified(data)) for place, data in entries]

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries from the result stream, by id. Raises StoreUnreachable, StoreError."""
        self._store.delete(ids)

    def _verified(self, data: bytes) -> Block | Will | None:
        try:
            message = self._open(data)
        except Untrusted:
            self.refuse("bad signature")
            return None
        if message.run != self.run_id:
            self.refuse("other run")
            return None
        return message

    def _open(self, data: bytes) -> Block | Will:
        try:
            return Block.parse(self._signer.verify(Block.KIND, data))
        except Untrusted:
            return Will.parse(self._signer.verify(Will.KIND, data))
