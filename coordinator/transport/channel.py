"""The coordinator's side of the wire: batches out by Celery, controls and results by Redis."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import kombu.exceptions
from celery import Celery

from osbench.common.errors import StoreAway, Untrusted
from osbench.common.protocol import broker
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.messages import Batch, Block, Control, Fence, Specification
from osbench.common.protocol.store import Store
from osbench.coordinator.fleet.worker import Member

#: Stream entries read at once.
READ_LIMIT = 32
#: Longest wait for a broker to confirm a message, seconds.
CONFIRM_S = 10.0


class Channel:
    """One run's traffic. Verifies what comes in and counts what it refuses."""

    def __init__(
        self, *, store: Store, sealer: Sealer, vault: Vault, app: Celery, run_id: str, epoch: str
    ) -> None:
        self.store = store
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

    def specify(self, specification: Specification) -> None:
        """Lay out a workload's specification, encrypted."""
        token = self._vault.encrypt(specification.body())
        data = self._sealer.seal(Specification.KIND, {"vault": token})
        self.store.put_specification(specification.workload, data)

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

    def control(self, records: Mapping[str, Control]) -> None:
        """Write control records by incarnation."""
        if records:
            self.store.put_controls(
                {
                    name: self._sealer.seal(Control.KIND, record.body())
                    for name, record in records.items()
                }
            )

    def read(self, wait_s: float) -> list[Block | Fence]:
        """New blocks and fences in stream order; `trim` once they are on disk."""
        entries = self.store.read(self._position, wait_s, READ_LIMIT)
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
            self.store.trim(self._position)
            self._trimmed, self.untrimmed = self._position, 0

    def _open(self, data: bytes) -> Block | Fence:
        try:
            return Block.parse(self._sealer.open(Block.KIND, data))
        except Untrusted:
            return Fence.parse(self._sealer.open(Fence.KIND, data))

    def fence(self, incarnation: str) -> str:
        """Put a fence for a worker into the stream; answers its nonce."""
        nonce = secrets.token_hex(8)
        fence = Fence(run=self.run_id, epoch=self.epoch, incarnation=incarnation, nonce=nonce)
        self.store.append(self._sealer.seal(Fence.KIND, fence.body()))
        return nonce


class Controls:
    """The control record of each member: kept, changed, and written when it differs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._records: dict[str, Control] = {}
        #: Changed and, as far as we know, not written.
        self._unwritten: set[str] = set()

    def change(self, members: Iterable[Member], **fields: Any) -> None:
        """Set the same fields for some members and write what changed, acknowledgements too."""
        self.write(dict.fromkeys(members, fields))

    def write(self, changes: Mapping[Member, Mapping[str, Any]]) -> None:
        """Set fields by member and write the records that differ from the last ones.

        Raises StoreAway; what could not be written goes with the next call.
        """
        for member, fields in changes.items():
            name = member.incarnation
            before = self._records.get(name) or Control(
                run=self._channel.run_id,
                epoch=self._channel.epoch,
                incarnation=name,
                version=0,
            )
            after = replace(before, acknowledged=member.blocks, **fields)
            if after != before:
                member.version += 1
                self._records[name] = replace(after, version=member.version)
                self._unwritten.add(name)
        self._channel.control({name: self._records[name] for name in self._unwritten})
        self._unwritten.clear()
