"""The control record of each membership in Redis: the state that the coordinator requests of it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from osbench.common.protocol.messages import Control
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.transport.channel import Channel

#: Most blocks behind a gap, and most batches to be given back, that a record names.
NAMED_MOST = 64


class Controls:
    """The control records of a run's workers: the state that the coordinator requests of each."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        #: Counts the coordinator processes of the run; set when the run is opened.
        self.epoch = 1
        #: By session, or by membership if there is no session under this coordinator.
        self._records: dict[str, Control] = {}
        #: Sessions whose record was changed and is not known to be written.
        self._unwritten: set[str] = set()

    def change(self, workers: Iterable[WorkerHandle], **fields: Any) -> None:
        """Set the same fields in the records of some workers, and write changed records.

        Skips workers and raises errors as `write` does.
        """
        self.write(dict.fromkeys(workers, fields))

    def write(self, changes: Mapping[WorkerHandle, Mapping[str, Any]]) -> None:
        """Set fields by worker, and write the records to Redis that differ from the last ones.

        Acknowledged blocks and recalled batches are updated too. Skips workers without a session,
        unless `over` is set. Raises StoreUnreachable, StoreError: then the next call writes the
        records.
        """
        self._write(changes, answered=False)

    def answer(self, workers: Iterable[WorkerHandle], taking_over: Container[int] = ()) -> None:
        """Acknowledge the last heartbeats of some workers, which renews their leases.

        Must not be called with a lost worker. Raises StoreUnreachable, StoreError.

        `taking_over` has numbers of workloads that began under an earlier coordinator. A worker of
        such a workload is left out until it has a record of this coordinator: a record that does
        not name the workload would end it.
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
        """Notify workers that were invited, and may be about to join, that the run is over.

        `invited` has the future membership of each, by incarnation. Raises StoreUnreachable,
        StoreError.
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
        """Mark the records of some workers as unwritten, since Redis may have lost them.

        The next call of `write`, `change` or `answer` writes them. Workers without a record are
        ignored.
        """
        self._unwritten.update(
            key for worker in workers if (key := worker.session or worker.mid) in self._records
        )
