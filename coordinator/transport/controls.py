"""The control record of each membership: kept, changed, and written again and again."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from osbench.common.protocol.messages import Control
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.transport.channel import Channel

#: Blocks behind a gap, and batches to be given back, that a record names at most.
NAMED_MOST = 64


class Controls:
    """Control records of a run's workers: the state that the coordinator requests of each."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        #: Counts the coordinator processes of the run; set when the run is opened.
        self.epoch = 1
        #: By session, or by membership if there is no session under this coordinator.
        self._records: dict[str, Control] = {}
        #: Sessions whose record was changed and is not known to be written.
        self._unwritten: set[str] = set()

    def change(self, workers: Iterable[WorkerHandle], **fields: Any) -> None:
        """Set the same fields for some workers and write changed records, acknowledgements too."""
        self.write(dict.fromkeys(workers, fields))

    def write(self, changes: Mapping[WorkerHandle, Mapping[str, Any]]) -> None:
        """Set fields by worker and write the records that differ from the last ones.

        Raises StoreUnreachable; records that could not be written go with the next call.
        """
        self._write(changes, answered=False)

    def answer(self, workers: Iterable[WorkerHandle], taking_over: Container[int] = ()) -> None:
        """Acknowledge the last heartbeat of some workers: it renews their leases.

        Raises StoreUnreachable.

        Must not be called with a lost worker. A worker that serves a workload in `taking_over`, and
        has no record of this coordinator, is left out: its first record has to say how it goes on,
        or it would drop its workload.
        """
        told = [
            one
            for one in workers
            if one.workload not in taking_over or (one.session or one.mid) in self._records
        ]
        self._write({worker: {} for worker in told}, answered=True)

    def _write(self, changes: Mapping[WorkerHandle, Mapping[str, Any]], *, answered: bool) -> None:
        for worker, fields in changes.items():
            if not worker.session and not fields.get("over"):
                continue
            key, known = worker.session or worker.mid, worker.membership
            before = self._records.get(key) or self._first(
                worker.incarnation, worker.mid, worker.session
            )
            after = replace(
                before,
                acknowledged=known.acknowledged,
                have=sorted(known.have)[:NAMED_MOST],
                recall=sorted(worker.recall)[:NAMED_MOST],
                answers=worker.beat.beat if answered else before.answers,
                **fields,
            )
            if after != before:
                self._records[key] = replace(after, version=before.version + 1)
                self._unwritten.add(key)
        written = [self._records[session] for session in self._unwritten]
        self._channel.control({record.membership: record for record in written})
        self._unwritten.clear()

    def dismiss(self, invited: Mapping[str, str]) -> None:
        """Notify workers that may be about to join that the run is over. Raises StoreUnreachable.

        `invited` has the membership that each of them would have, by incarnation.
        """
        records = [self._first(name, mid, mid) for name, mid in invited.items()]
        self._channel.control(
            {one.membership: replace(one, version=1, over=True) for one in records}
        )

    def _first(self, incarnation: str, mid: str, session: str) -> Control:
        return Control(
            run=self._channel.run_id,
            epoch=self.epoch,
            incarnation=incarnation,
            session=session,
            membership=mid,
            version=0,
        )

    def restate(self, workers: Iterable[WorkerHandle]) -> None:
        """Write the records of some workers once more: Redis may have lost them."""
        self._unwritten.update(
            key for worker in workers if (key := worker.session or worker.mid) in self._records
        )
