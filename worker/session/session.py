"""A membership: the part of this process in a run, from an offer to the last block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from osbench.common.errors import Untrusted
from osbench.common.machine.redis_clock import ClockOffset
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Batch, Control, Offer
from osbench.common.protocol.store import Store
from osbench.worker.session.beat_log import BeatLog
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.intake import Intake
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.refusals import (
    BAD_SIGNATURE,
    NO_RUN,
    OTHER_RUN,
    OTHER_SESSION,
    OTHER_WORKER,
    SEEN_BEFORE,
)
from osbench.worker.session.shipper import Shipper
from osbench.worker.session.workloads import Workloads

#: A coordinator that was silent for so long gets blocks again at longer intervals, seconds.
QUIET_S = 3.0


class Session:
    """A membership: this process's part in one run, from a coordinator's offer to its last block.

    `offer` is called by Celery's thread, `state` and `facts` also by the heartbeats', the rest by
    the agent's. A membership goes on under all coordinator processes of its run: each has a
    separate session (`takeover`). It ends in one step, `finish` or `drop`: afterwards no batch is
    taken. After `finish` only the blocks of its outbox are still delivered.
    """

    def __init__(
        self,
        offer: Offer,
        *,
        equipment: Equipment,
        store: Store,
        beats: BeatLog,
        news: Callable[[], None],
    ) -> None:
        self.run = offer.run
        self.epoch = offer.epoch
        self.session = offer.session
        self.membership = offer.membership
        self.store = store
        self._equipment = equipment
        self._refusals = equipment.refusals
        self._beats = beats
        self._intake = Intake(
            run=offer.run, incarnation=equipment.incarnation, session=offer.session
        )
        equipment.log.begin(offer.run)
        equipment.preparation.spans.clear()
        #: When the last sign of the coordinator was received, monotonic seconds; the shipper reads
        #: it from its start.
        self._heard = time.monotonic()
        spool = f"{equipment.incarnation}.{offer.membership[:32]}.blocks"
        self.outbox = Outbox(equipment.spool_dir / spool, equipment.spool_limit_bytes)
        self.shipper = Shipper(
            run=offer.run,
            incarnation=equipment.incarnation,
            membership=offer.membership,
            store=store,
            signer=equipment.signer,
            outbox=self.outbox,
            log=equipment.log,
            patience_s=self._patience_s,
            spans=equipment.preparation.spans,
        )
        self.workloads = Workloads(
            run=offer.run, equipment=equipment, store=store, shipper=self.shipper, news=news
        )
        self.leaving = False
        #: The coordinator has ended the membership.
        self.over = False
        self._ended = False
        self._version = 0
        self._lease_ns = 0
        self._record = b""
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """Return the state for heartbeats.

        It is draining (leaving), running (under load), ready or preparing (before a load), or idle.
        """
        workloads = self.workloads
        if self.leaving:
            return "draining"
        if workloads.engine is not None:
            return "running"
        if workloads.preparing >= 0:
            return "ready" if workloads.prepared == workloads.preparing else "preparing"
        return "idle"

    def facts(self) -> dict[str, Any]:
        """Return the fields of a heartbeat that depend on the session, by name.

        Such as the run, the last batch taken, the numbers of blocks made and delivered, and counts
        of virtual users and iterations.
        """
        workloads = self.workloads
        return {
            "run": self.run,
            "epoch": self.epoch,
            "session": self.session,
            "membership": self.membership,
            "got": self._intake.got,
            "made": self.outbox.number() - 1,
            "delivered": self.outbox.delivered,
            "prepared": workloads.prepared,
            "problem": workloads.problem,
            "user_limit": workloads.user_limit,
            "generation": workloads.generation,
            "busy": workloads.busy,
            "surplus": workloads.surplus,
            "living": workloads.living,
            "queued": workloads.queued,
            "longest": workloads.longest(),
        }

    def unheard_s(self) -> float:
        """Return the seconds since the coordinator's last new control record or offer."""
        return time.monotonic() - self._heard

    def offer(self, batch: Batch) -> str:
        """Take a verified batch; return why it is refused, or "". Called by Celery's thread.

        Batches that begin now go to the engine, or wait for the load. While the membership is
        leaving, their iterations are returned to the coordinator. After its end batches are
        refused.
        """
        with self._lock:
            if self._ended:
                return NO_RUN
            taken, refusal = self._intake.offer(batch)
            self._take(taken)
        return refusal

    def is_news(self, data: bytes | None) -> bool:
        """Return whether a control record is to be applied: it differs from the last one.

        False for None, and after the end of the membership.
        """
        return data is not None and data != self._record and not self._ended

    def follow(self, data: bytes | None, offset: ClockOffset, since_ns: int) -> None:
        """Apply a control record: acknowledged blocks, recalled batches, lease, load.

        Ignored if it is None, repeated, or after the end. Counted as refused if it is not trusted,
        of another run, worker, membership or session, or of an old version; with the latter two
        acknowledgements still apply. `offset` converts Redis time. `since_ns`: monotonic time at
        which the record before was read; this record was written later.
        """
        self._equipment.log.clock = offset
        if data is None or not self.is_news(data):
            return
        self._record = data
        try:
            control = Control.parse(self._equipment.signer.verify(Control.KIND, data))
        except Untrusted:
            refusal = BAD_SIGNATURE
        else:
            refusal = self._follow(control, offset, since_ns)
        if refusal:
            self._refusals.count(refusal, "a control record")

    def takeover(self, offer: Offer) -> None:
        """Follow the next coordinator process of the run: a new session of the same membership.

        Waiting batches are dropped, because it sends them again. Blocks that are not acknowledged
        are sent again soon.
        """
        with self._lock:
            self.session, self.epoch = offer.session, offer.epoch
            self._intake.rebind(offer.session)
            self._version = 0
        self._heard = time.monotonic()
        self.outbox.rush()

    def fetch(self) -> None:
        """Read the workload's specification from Redis, unless leaving; prepare it in a thread.

        Does not wait for the preparation, and reads again later if there is no specification yet.
        Raises StoreUnreachable, StoreError.
        """
        if not self.leaving:
            self.workloads.fetch()

    def leave(self) -> None:
        """Start nothing more; return unstarted iterations to the coordinator.

        Running iterations go on. Returns at once; `finish` ends the membership.
        """
        with self._lock:
            self.leaving = True
            self.workloads.stop()
        self.shipper.wake()

    def finish(self) -> bool:
        """End the membership if it is leaving and all its granted iterations are in blocks.

        If it is leaving, returns iterations that no engine will start to the coordinator and packs
        results into blocks; sends nothing. At the end the last block is made, under the same lock.
        Returns whether the membership has ended, now or before.
        """
        with self._lock:
            if not self.leaving or self._ended:
                return self._ended
            self.workloads.return_rest()
            self.shipper.pack()
            if self.workloads.unsettled:
                return False
            self.shipper.finish()
            self._ended = True
        return True

    def drop(self) -> None:
        """Mark the membership as ended by its coordinator; no iterations are returned."""
        with self._lock:
            self._ended = True

    def close(self) -> None:
        """End the shipper, the engine and the log of an ended membership; running iterations go on.

        Waits at most five seconds for the shipper's thread.
        """
        self._ended = True
        self.workloads.close()
        self.shipper.close()
        self._equipment.log.end()

    def _patience_s(self) -> float:
        quiet = self.unheard_s() > QUIET_S
        return timers.RESEND_MOST_S if quiet else timers.RESEND_S

    def _renew(self, beat: int) -> None:
        sent_ns = self._beats.sent_ns(beat)
        if sent_ns is not None:
            self._lease_ns = max(self._lease_ns, sent_ns + int(timers.LEASE_S * 1e9))
            with self._lock:
                self.workloads.set_lease(self._lease_ns)

    def _take(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            if self.leaving:
                self.shipper.give_back(batch.workload, batch.intervals)
            else:
                self.workloads.add(batch)

    def _follow(self, control: Control, offset: ClockOffset, since_ns: int) -> str:
        if control.run != self.run:
            return OTHER_RUN
        if control.incarnation != self._equipment.incarnation:
            return OTHER_WORKER
        if control.membership != self.membership:
            return OTHER_SESSION
        # what is on disk stays there, whichever coordinator process says it
        self.outbox.acknowledge(control.acknowledged, control.have)
        self.over = self.over or control.over
        if control.session != self.session:
            return OTHER_SESSION
        if control.version <= self._version:
            return SEEN_BEFORE
        if self.unheard_s() > QUIET_S:
            self.outbox.rush()
        self._version = control.version
        self._heard = time.monotonic()
        self._renew(control.answers)
        if not self.over:
            with self._lock:
                self._apply(control, offset, since_ns)
        return ""

    def _apply(self, control: Control, offset: ClockOffset, since_ns: int) -> None:
        recalled = self._intake.recall(control.recall)
        for seq in recalled.held:
            self.workloads.take_back(seq)
        if recalled.voids:
            self.shipper.reject(recalled.voids)
        self._take(recalled.taken)
        if not self.leaving:
            self.workloads.follow(control, offset, since_ns)
