"""The coordinator's side of the wire: batches out by Celery, controls and results by Redis."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence

import kombu.exceptions
from celery import Celery

from osbench.common.errors import StoreAway, Untrusted
from osbench.common.protocol import broker
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.messages import Batch, Block, Control, Fence, Specification
from osbench.common.protocol.store import Store

#: Stream entries read at once.
READ_LIMIT = 32
#: Longest wait for a broker to confirm a message, seconds.
CONFIRM_S = 10.0


class Channel:
    """One run's traffic. Verifies what comes in and counts what it refuses."""

    def __init__(
        self, *, store: Store, sealer: Sealer, vault: Vault, app: Celery, run_id: str, epoch: str
    ) -> None:
        self._store = store
        self.run_id = run_id
        self.epoch = epoch
        self._sealer = sealer
        self._vault = vault
        self._app = app
        self._position = self._trimmed = "0"
        #: The last read did not take all there was.
        self.behind = False
        #: Bytes that were read and not trimmed.
        self.untrimmed = 0
        #: Stream entries that could not be verified or belong to another run.
        self.refused = 0
        #: When the broker first refused what was sent since; None while it takes messages.
        self._refused_since: float | None = None

    @property
    def broker_away_s(self) -> float:
        """Seconds for which the broker has taken no message that it was sent; 0 where it does."""
        return 0.0 if self._refused_since is None else time.monotonic() - self._refused_since

    def open(self, server_run_id: str) -> None:
        """Write the head of the run: a worker that is marked for it begins with that."""
        self._store.open({"epoch": self.epoch, "boot": server_run_id, "state": "running"})

    def close(self, incarnations: Sequence[str]) -> None:
        """Remove all that the run has in Redis."""
        self._store.close(incarnations)

    def specify(self, specification: Specification) -> None:
        """Publish a workload's specification, encrypted."""
        token = self._vault.encrypt(specification.body())
        data = self._sealer.seal(Specification.KIND, {"vault": token})
        self._store.put_specification(specification.workload, data)

    def publish(self, batch: Batch) -> None:
        """Send a batch. Raises StoreAway where the broker does not take it."""
        data = self._sealer.seal(Batch.KIND, batch.body())
        try:
            self._app.send_task(
                broker.TASK,
                args=(data,),
                queue=broker.queue(batch.incarnation),
                retry=False,
                ignore_result=True,
                mandatory=True,
                confirm_timeout=CONFIRM_S,
                # Celery would put the whole batch into a header, in clear, once more
                argsrepr="(batch)",
            )
        except (kombu.exceptions.OperationalError, OSError) as error:
            self._refused_since = self._refused_since or time.monotonic()
            raise StoreAway(f"the broker does not take messages: {error}") from None
        self._refused_since = None

    def revoke(self, batches: Sequence[int]) -> list[bool]:
        """Take batches away; True where no worker had claimed it, so that none can start it."""
        return self._store.take_away(batches)

    def control(self, records: Mapping[str, Control]) -> None:
        """Write control records by incarnation."""
        if records:
            self._store.put_controls(
                {
                    name: self._sealer.seal(Control.KIND, record.body())
                    for name, record in records.items()
                }
            )

    def read(self, wait_s: float) -> list[Block | Fence]:
        """New blocks and fences in stream order; `trim` once they are on disk."""
        entries = self._store.read(self._position, wait_s, READ_LIMIT)
        self.behind = len(entries) == READ_LIMIT
        found: list[Block | Fence] = []
        for position, data in entries:
            self._position = position
            self.untrimmed += len(data)
            try:
                message = self._open(data)
            except Untrusted:
                self.refused += 1
                continue
            if message.run == self.run_id and message.epoch == self.epoch:
                found.append(message)
            else:
                self.refused += 1
        return found

    def trim(self) -> None:
        """Drop what has been read from the stream: it is on disk."""
        if self._position != self._trimmed:
            self._store.trim(self._position)
            self._trimmed, self.untrimmed = self._position, 0

    def _open(self, data: bytes) -> Block | Fence:
        try:
            return Block.parse(self._sealer.open(Block.KIND, data))
        except Untrusted:
            return Fence.parse(self._sealer.open(Fence.KIND, data))

    def fence(self, incarnation: str) -> str:
        """Put a fence for a worker into the stream; returns its nonce."""
        nonce = secrets.token_hex(8)
        fence = Fence(run=self.run_id, epoch=self.epoch, incarnation=incarnation, nonce=nonce)
        self._store.append(self._sealer.seal(Fence.KIND, fence.body()))
        return nonce
