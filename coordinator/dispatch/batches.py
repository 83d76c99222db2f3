"""The batches of one workload: cut from the ledger, journalled, sent, revoked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from osbench.common.errors import StoreAway
from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.coordinator.dispatch.port import DispatchPort, PlannedBatch
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger


class Batches:
    """Every change of where an iteration number is goes through here."""

    def __init__(
        self,
        port: DispatchPort,
        ledger: Ledger,
        workload: int,
        rows_of: Callable[[Intervals], bytes] = lambda _: b"",
    ) -> None:
        """`rows_of` gives the sealed rows of a data file that some numbers need."""
        self._port = port
        self._ledger = ledger
        self._workload = workload
        self._rows_of = rows_of
        #: Batches whose sending failed: to be revoked before anything else.
        self._unconfirmed: list[int] = []

    @property
    def unconfirmed(self) -> bool:
        """It is not known of some batches whether they were sent."""
        return bool(self._unconfirmed)

    def cut(self, worker: WorkerHandle, numbers: Intervals, dues: bytes = b"") -> PlannedBatch:
        """A batch of numbers for a worker, to be sent next."""
        batch = PlannedBatch(
            batch=self._port.next_batch_id(),
            worker=worker.incarnation,
            workload=self._workload,
            intervals=list(numbers),
            dues=dues,
            rows=self._rows_of(numbers),
        )
        self._ledger.cut(batch.batch, worker.incarnation, numbers)
        return batch

    def send(self, batches: Sequence[PlannedBatch]) -> None:
        """Journal batches, then send them. Raises StoreAway."""
        if not batches:
            return
        self._port.journal(
            {
                "do": "cut",
                "batch": batch.batch,
                "worker": batch.worker,
                "workload": batch.workload,
                "intervals": batch.intervals,
            }
            for batch in batches
        )
        for at, batch in enumerate(batches):
            try:
                self._port.publish(batch)
            except StoreAway:
                # whether it was delivered is not known: revoke it before its numbers move
                self._unconfirmed.extend(rest.batch for rest in batches[at:])
                raise

    def revoke(self, batches: Sequence[int]) -> None:
        """Take batches away; the numbers of those that no worker has claimed can move."""
        asked = [number for number in batches if number in self._ledger.batches]
        if not asked:
            return
        answers = self._port.revoke(asked)
        won = [number for number, mine in zip(asked, answers, strict=True) if mine]
        if won:
            self._port.journal([{"do": "revoked", "batches": won}])
        for number, mine in zip(asked, answers, strict=True):
            if mine:
                self._ledger.revoked(number)
            else:
                self._ledger.claimed(number)

    def revoke_unconfirmed(self) -> None:
        """Take back the batches whose sending failed."""
        if self._unconfirmed:
            self.revoke(self._unconfirmed)
            self._unconfirmed = []

    def revoke_open(self, incarnation: str) -> None:
        """Take back what a worker is not known to have claimed."""
        self.revoke(self._ledger.open_batches(incarnation))

    def drop(self, numbers: Intervals, dues_of: Callable[[Intervals], bytes]) -> None:
        """Drop arrivals whose worker is lost and that no other can start in time.

        `dues_of` gives the instants at which they were due, as in batches.
        """
        dropped = self._ledger.droppable(numbers)
        record = {"do": "drop", "workload": self._workload}
        record |= {"numbers": list(dropped), "dues": dues_of(dropped)}
        self._port.journal([record])
        self._ledger.drop(numbers, Outcome.DROPPED_WORKER_LOST)
