"""The batches of one workload: granted, sent until they are taken, recalled.

A batch is the grant itself: once it is in the journal its numbers belong to the worker. They return
to the pool only by a consent that the worker signs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.load.dispatch.port import DispatchPort, PlannedBatch
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.results.accounting.ledger import Ledger

LOG = logging.getLogger(__name__)

#: Seconds after which batches that a worker does not take are recalled.
UNDELIVERED_S = 10.0
#: Number of such recalls in a row, after which it gets no more work.
UNDELIVERED_MOST = 3
#: Batches of a worker that are sent again at once, at most.
RESENT_MOST = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """Iteration numbers to be granted to a worker as one batch; not in the journal yet."""

    worker: WorkerHandle
    numbers: Intervals
    dues: bytes = b""


@dataclass(slots=True)
class _Delivery:
    waiting: dict[int, PlannedBatch] = field(default_factory=dict)
    #: Batches that have to be sent, in order.
    unsent: list[int] = field(default_factory=list)
    #: When one was last sent, and last known to be taken, monotonic.
    sent_at: float = 0.0
    taken_at: float = 0.0
    #: Number of recalls of all batches, none taken in between.
    untaken: int = 0


class Batches:
    """The batches of one workload: grants, sends and recalls them, and drops arrivals.

    Grants and drops go to the journal of the run first.
    """

    def __init__(
        self,
        port: DispatchPort,
        ledger: Ledger,
        workload: int,
        rows_of: Callable[[Intervals], bytes] = lambda _: b"",
    ) -> None:
        """Begin without batches of the workload with the number `workload`.

        `rows_of` returns the encrypted rows of the data file for iteration numbers; without a data
        file no bytes.
        """
        self._port = port
        self._ledger = ledger
        self._workload = workload
        self._rows_of = rows_of
        #: By membership.
        self._deliveries: dict[str, _Delivery] = {}

    def grant(self, grants: Sequence[Grant]) -> None:
        """Write grants to the journal, then send them as batches; do nothing without grants.

        Raises StorageError if the journal fails: then nothing is granted. Raises StoreUnreachable
        or StoreError if sending fails: the grants stand, and `deliver` sends them again.
        """
        if not grants:
            return
        seqs: dict[str, int] = {}
        planned = []
        for one in grants:
            mid = one.worker.mid
            known = one.worker.membership
            seqs[mid] = seqs.get(mid, known.seq) + 1
            planned.append(
                PlannedBatch(
                    worker=one.worker,
                    seq=seqs[mid],
                    workload=self._workload,
                    intervals=list(one.numbers),
                    dues=one.dues,
                    rows=self._rows_of(one.numbers),
                )
            )
        self._port.decide(
            {
                "do": "cut",
                "mid": batch.worker.mid,
                "seq": batch.seq,
                "workload": batch.workload,
                "intervals": batch.intervals,
                "dues": batch.dues,
            }
            for batch in planned
        )
        for batch in planned:
            delivery = self._deliveries.setdefault(batch.worker.mid, _Delivery())
            if not delivery.waiting:
                delivery.taken_at = time.monotonic()
            delivery.waiting[batch.seq] = batch
            delivery.unsent.append(batch.seq)
        self.deliver(dict.fromkeys(batch.worker for batch in planned))

    def deliver(self, workers: Iterable[WorkerHandle]) -> None:
        """Send batches that were not sent yet, and send batches again that workers have not taken.

        The latter if the worker gives a sign of life more than `RESEND_S` seconds after the
        sending, at most `RESENT_MOST` at once. If a worker takes none for `UNDELIVERED_S`, they are
        recalled; the recall number `UNDELIVERED_MOST` in a row makes it UNREACHABLE. Batches of an
        earlier coordinator not taken are recalled at once. Raises StoreUnreachable, StoreError.
        """
        now = time.monotonic()
        lacking = []
        for worker in workers:
            delivery = self._deliveries.get(worker.mid)
            if worker.beat.got < worker.membership.seq:
                self._recall_unknown(worker, delivery)
            if delivery is None or not delivery.waiting:
                continue
            self._forget_taken(worker, delivery)
            # while the broker is unreachable nothing is sent
            if now - delivery.taken_at > UNDELIVERED_S and delivery.sent_at > delivery.taken_at:
                delivery.taken_at = now
                self._ask_back(worker, delivery)
            overdue = worker.alive_at > delivery.sent_at + timers.RESEND_S
            if overdue and not delivery.unsent and worker.present:
                delivery.unsent = sorted(delivery.waiting)[:RESENT_MOST]
            if delivery.unsent:
                lacking.append((worker, delivery))
        self._send(lacking, now)

    def _send(self, lacking: Sequence[tuple[WorkerHandle, _Delivery]], now: float) -> None:
        """Send all unsent batches in one call, as one by one each would need a round trip.

        Batches under recall are left out. `now`: monotonic seconds. Raises StoreUnreachable or
        StoreError; then all stay unsent.
        """
        sent: list[PlannedBatch] = []
        reached = []
        for worker, delivery in lacking:
            asked = [seq for seq in delivery.unsent if seq not in worker.recall]
            found = [delivery.waiting[seq] for seq in asked if seq in delivery.waiting]
            sent += found
            reached += [delivery] if found else []
        if sent:
            self._port.publish(sent)
        for delivery in reached:
            delivery.sent_at = now
        for _, delivery in lacking:
            delivery.unsent.clear()

    def _ask_back(self, worker: WorkerHandle, delivery: _Delivery) -> None:
        LOG.warning("worker %s does not take its batches", worker.name)
        self.recall(worker, delivery.waiting)
        delivery.untaken += 1
        if delivery.untaken == UNDELIVERED_MOST:
            LOG.warning("worker %s gets no more work", worker.name)
            worker.unreachable()

    def _recall_unknown(self, worker: WorkerHandle, delivery: _Delivery | None) -> None:
        """Recall an earlier coordinator's batches that the worker has not got: none is resent."""
        ours = delivery.waiting if delivery is not None else {}
        unknown = [
            seq
            for seq in self._ledger.open_batches(worker.name)
            if seq > worker.beat.got and seq not in ours
        ]
        self.recall(worker, unknown)

    def _forget_taken(self, worker: WorkerHandle, delivery: _Delivery) -> None:
        for seq in list(delivery.waiting):
            if seq <= worker.beat.got or not self._ledger.batch(worker.name, seq):
                del delivery.waiting[seq]
                delivery.taken_at = time.monotonic()
                # recalled batches may have come back untaken
                if seq not in worker.recall:
                    delivery.untaken = 0

    def recall(self, worker: WorkerHandle, seqs: Iterable[int]) -> None:
        """Ask a worker to give back the iterations of batches `seqs` that it has not started.

        Its next control record asks for that. Until it has done so, the worker gets no work.
        Batches that are under recall already are left alone.
        """
        asked = set(seqs) - worker.recall
        worker.recall |= asked
        worker.untold = worker.untold or bool(asked)

    def recall_all(self, workers: Iterable[WorkerHandle]) -> None:
        """Ask workers to give back the iterations they have not started, of all their batches."""
        for worker in workers:
            self.recall(worker, self._ledger.open_batches(worker.name))

    def forget_recalls(self, worker: WorkerHandle) -> None:
        """Forget recalls of batches that the worker has followed, by its heartbeat.

        Also recalls of batches whose numbers are all settled or given back. Once none is left, the
        worker gets work again.
        """
        beat, known = worker.beat, worker.membership
        idle = not beat.queued and beat.made <= known.acknowledged
        for seq in list(worker.recall):
            if not self._ledger.batch(worker.name, seq) or (idle and beat.got >= seq):
                worker.recall.discard(seq)

    def drop(self, numbers: Intervals, why: Outcome, dues_of: Callable[[Intervals], bytes]) -> None:
        """Write to the journal that arrivals are dropped because of `why`, their final state."""
        record = {"do": "drop", "workload": self._workload, "why": DROP_REASONS[why]}
        self._port.decide([record | {"numbers": list(numbers), "dues": dues_of(numbers)}])
