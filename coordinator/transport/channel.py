"""The coordinator's side of the wire: batches out by Celery, everything else by Redis."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from osbench.common.errors import StoreUnreachable, Untrusted
from osbench.common.ports import clock as time
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.messages import Batch, Block, Control, Offer, Specification, Will
from osbench.common.protocol.redis_client import Client
from osbench.common.protocol.store import Store
from osbench.common.protocol.wire import Wire
from osbench.coordinator.transport.publisher import Publisher

LOG = logging.getLogger(__name__)

#: Result entries read at once.
READ_LIMIT = 32


class Channel:
    """A run's traffic in Redis. Verifies incoming messages and counts refused ones."""

    def __init__(
        self,
        *,
        store: Store,
        client: Client,
        signer: Signer,
        vault: Vault,
        publisher: Publisher,
        run_id: str,
    ) -> None:
        self._store = store
        self._wire = Wire(client)
        self.run_id = run_id
        self._signer = signer
        self._vault = vault
        self._publisher = publisher
        #: Signed specifications by workload.
        self._specifications: dict[int, bytes] = {}
        #: The last read did not take all there was.
        self.behind = False
        #: How often Redis had lost what was written to it: it was restarted, rolled back, emptied.
        self.rollbacks = 0
        self._turn = 0
        #: Entries that were refused, by reason.
        self.refusals: Counter[str] = Counter()
        #: When the broker first refused what was sent since; None while it takes messages.
        self._refused_since: float | None = None

    def refuse(self, reason: str) -> None:
        """Count an entry that cannot be used."""
        self.refusals[reason] += 1

    @property
    def refused(self) -> int:
        """Entries that could not be verified or belong to another run."""
        return sum(self.refusals.values())

    @property
    def broker_away_s(self) -> float:
        """Return the seconds for which the broker has taken no message; 0 if it takes them."""
        return 0.0 if self._refused_since is None else time.monotonic() - self._refused_since

    def tend(self) -> None:
        """Make sure that workers can deliver results. Raises StoreUnreachable."""
        turn = self._store.tend()
        if turn <= self._turn:
            self.rollbacks += 1
            LOG.warning("Redis has lost what was written to it; the run goes on")
        self._turn = turn

    def close(self, offered: Iterable[str], left: Iterable[str]) -> None:
        """Remove the data of the run in Redis; `offered` are workers with an offer of it.

        The records of memberships that have `left` expire soon.
        """
        self._store.close(left)
        self._wire.withdraw(offered)

    def specify(self, specification: Specification) -> bytes:
        """Publish a workload's specification, encrypted; returns the digest that names it."""
        token = self._vault.encrypt(specification.body())
        data = self._signer.sign(Specification.KIND, {"vault": token})
        self._specifications[specification.workload] = data
        self.restate([specification.workload])
        return hashlib.sha256(data).digest()

    def restate(self, workloads: Iterable[int]) -> None:
        """Write the specifications of some workloads once more. Raises StoreUnreachable."""
        self._store.put_specifications(
            {number: self._specifications[number] for number in workloads}
        )

    def publish(self, batches: Iterable[Batch]) -> None:
        """Send batches, in one go if Redis is the broker.

        Raises StoreUnreachable if the broker does not take them: some may have been sent then;
        StoreError if it refuses the right.
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
        """Write offers; each expires soon. Raises StoreUnreachable."""
        self._wire.offer(
            {one.incarnation: self._signer.sign(Offer.KIND, one.body()) for one in offers}
        )

    def control(self, records: Mapping[str, Control]) -> None:
        """Write control records by membership. Raises StoreUnreachable."""
        if records:
            self._store.put_controls(
                {
                    mid: self._signer.sign(Control.KIND, record.body())
                    for mid, record in records.items()
                }
            )

    def read(self, wait_s: float) -> list[tuple[str, Block | Will | None]]:
        """Return the oldest messages of the result stream with their ids; None: not for this run.

        They stay there until `delete`. Raises StoreUnreachable.
        """
        entries = self._store.read(wait_s, READ_LIMIT)
        self.behind = len(entries) == READ_LIMIT
        return [(place, self._verified(data)) for place, data in entries]

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries that are on disk, or not for us. Raises StoreUnreachable."""
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
