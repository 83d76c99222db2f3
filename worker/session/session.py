"""One run in one worker process: follows the control records until the last block."""

from __future__ import annotations

import gc
import logging
import threading
from pathlib import Path
from time import monotonic_ns

from osbench.common.clock import ClockOffset
from osbench.common.errors import OsbenchError, Untrusted
from osbench.common.masking import mask_url
from osbench.common.outcomes import Outcome
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.messages import Batch, Control, Specification
from osbench.common.protocol.store import Store
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import NEVER, Engine
from osbench.worker.engine.failures import message_of
from osbench.worker.engine.open_engine import OpenEngine
from osbench.worker.session.claimer import Claimer
from osbench.worker.session.intake import Intake
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.preparation import Preparation, Prepared
from osbench.worker.session.shipper import Shipper

LOG = logging.getLogger(__name__)


class Session:
    """The part of this process in one run. Only called by the agent's thread."""

    def __init__(  # noqa: PLR0913 - parts, by name
        self,
        *,
        run: str,
        epoch: str,
        incarnation: str,
        capacity: int,
        store: Store,
        sealer: Sealer,
        vault: Vault,
        preparation: Preparation,
        spool: Path,
        spool_limit_bytes: int,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self.store = store
        self._incarnation = incarnation
        self._capacity = capacity
        self._sealer = sealer
        self._vault = vault
        self._preparation = preparation
        self.outbox = Outbox(spool, spool_limit_bytes)
        self.claimer = Claimer(
            intake=Intake(run, epoch, incarnation),
            epoch=epoch,
            incarnation=incarnation,
            store=store,
        )
        self.shipper = Shipper(
            run=run,
            epoch=epoch,
            incarnation=incarnation,
            store=store,
            sealer=sealer,
            outbox=self.outbox,
        )
        self.engine: Engine | None = None
        #: Engines of earlier workloads that still have running threads.
        self._past: list[Engine] = []
        self.generation = 0
        self.prepared = -1
        self.problem = ""
        self.draining = False
        self._fenced = False
        self._released = False
        self._version = 0
        self._preparing = -1
        self._ready: Prepared | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """The state for heartbeats."""
        if self.draining:
            return "draining"
        if self.engine is not None:
            return "running"
        if self._preparing >= 0:
            return "ready" if self.prepared == self._preparing else "preparing"
        return "idle"

    @property
    def eager(self) -> bool:
        """Control records change often: before the load, and while users are added."""
        if self.engine is None or self._ready is None:
            return True
        eager_ns = int(self._ready.specification.eager_s * 1e9)
        return monotonic_ns() < self.engine.t0_ns + eager_ns

    @property
    def over(self) -> bool:
        """Nothing more is to be done for this run in this process.

        A fenced process still finishes its claimed iterations, because the results may settle
        iterations that otherwise count as lost.
        """
        held = self.engine is not None and self.engine.unsettled
        return self._released or (self._fenced and not held)

    @property
    def busy(self) -> int:
        """Running iterations."""
        return len(self.engine.inflight) if self.engine is not None else 0

    @property
    def empty(self) -> bool:
        """Every claimed number is in a result block."""
        return self.engine is None or not self.engine.unsettled

    @property
    def queued(self) -> int:
        """Claimed and not started."""
        return self.engine.queued if self.engine is not None else 0

    @property
    def stuck(self) -> int:
        """Threads that are still running after their iteration timed out."""
        engines = self._past if self.engine is None else [*self._past, self.engine]
        return sum(sum(1 for thread in engine.abandoned if thread.is_alive()) for engine in engines)

    def offer(self, data: bytes) -> str:
        """Take a batch from the broker; returns why it is refused, or ""."""
        try:
            batch = Batch.parse(self._sealer.open(Batch.KIND, data))
        except Untrusted as error:
            return str(error)
        return self.claimer.offer(batch)

    def follow(self, data: bytes | None, offset: ClockOffset) -> str:
        """Apply a control record; returns why it is refused, or ""."""
        if data is None:
            return ""
        try:
            control = Control.parse(self._sealer.open(Control.KIND, data))
        except Untrusted as error:
            return str(error)
        if (control.run, control.epoch, control.incarnation) != (
            self.run,
            self.epoch,
            self._incarnation,
        ):
            return "control record of another run or worker process"
        if control.version <= self._version:
            # the same record is read with every heartbeat; an older one is a replay
            return "" if control.version == self._version else "control record seen before"
        self._version = control.version
        self._apply(control, offset)
        return ""

    def drain(self) -> None:
        """Start nothing more and give back claimed iterations that were not started."""
        self.draining = True
        self.claimer.pause()
        if self.engine is not None:
            self.engine.stop(monotonic_ns())

    @property
    def drained(self) -> bool:
        """Nothing is running or to be given back, and all blocks are acknowledged."""
        if self.claimer.unsure or (self.engine is not None and self.engine.unsettled):
            return False
        return not len(self.outbox)

    def close(self) -> None:
        """End the run in this process."""
        self.claimer.close()
        if self.engine is not None:
            self.engine.close()
        self.shipper.flush()
        self.shipper.close()
        if len(self.outbox):
            LOG.warning(
                "run %s: %d result blocks were not acknowledged", self.run, len(self.outbox)
            )
        self.outbox.close()

    def _apply(self, control: Control, offset: ClockOffset) -> None:
        self.outbox.acknowledge(control.acknowledged)
        self._released = control.released
        if control.fenced and not self._fenced:
            self._fenced = True
            self.drain()
        if control.released or control.fenced:
            return
        if control.workload != self._preparing:
            self._leave()
            if control.workload >= 0:
                self._begin(control.workload)
            else:
                self._preparing = -1
        # t0 is only set after all workers have reported that they are prepared
        if self.engine is None and control.t0_at is not None and self._ready is not None:
            self._start(self._ready, control, offset)
        engine = self.engine
        if engine is None:
            return
        if control.stop_s is not None:
            engine.stop(engine.t0_ns + int(control.stop_s * 1e9))
        if control.generation != self.generation:
            engine.set_share(min(control.share, self._capacity))
            self.generation = control.generation

    def _begin(self, workload: int) -> None:
        with self._lock:
            self._preparing, self.prepared, self.problem = workload, -1, ""
            self._ready = None
        self._thread = threading.Thread(
            target=self._prepare, args=(workload,), name="preparation", daemon=True
        )
        self._thread.start()

    def _prepare(self, workload: int) -> None:
        ready, problem = None, ""
        try:
            data = self.store.specification(workload)
            if data is None:
                raise Untrusted("the workload's specification is missing")
            body = self._vault.decrypt(self._sealer.open(Specification.KIND, data)["vault"])
            ready = self._preparation.prepare(Specification.parse(body))
            _exempt_from_garbage_collection()
        except OsbenchError as error:
            problem = str(error)
        except BaseException as error:  # noqa: BLE001 - a plug-in's warm-up may raise anything
            problem = f"preparing failed: {type(error).__name__}: {mask_url(message_of(error))}"
        # ignored if another workload has been started meanwhile
        with self._lock:
            if workload == self._preparing:
                self._ready, self.problem = ready, problem
                self.prepared = workload

    def _start(self, ready: Prepared, control: Control, offset: ClockOffset) -> None:
        assert control.t0_at is not None
        specification = ready.specification
        t0_ns = offset.to_monotonic_ns(control.t0_at)
        request_work = self._request_work
        if specification.open:
            # without max_concurrency, or beyond the capacity, the limit is this worker's capacity
            limited = not specification.max_concurrency or control.share > self._capacity
            self.engine = OpenEngine(
                ready.body,
                t0_ns,
                NEVER,
                request_work,
                max_lag_ns=int(specification.max_lag_s * 1e9),
                at_limit=(Outcome.DROPPED_CAPACITY if limited else Outcome.DROPPED_MAX_CONCURRENCY),
            )
        else:
            self.engine = ClosedEngine(ready.body, t0_ns, NEVER, request_work)
        self.generation = -1
        self.shipper.serve(self.engine, control.workload, specification.ship_interval_s)
        self.claimer.serve(self.engine, control.workload)

    def _leave(self) -> None:
        """End the current workload and ship its last rows."""
        if self.engine is not None:
            self.engine.close()
            self.shipper.flush()
            # kept to count threads that are still running after their iteration timed out
            self._past = [
                engine
                for engine in (*self._past, self.engine)
                if any(thread.is_alive() for thread in engine.abandoned)
            ]
            self.engine = None

    def _request_work(self) -> None:
        self.claimer.wake()
        self.shipper.wake()


def _exempt_from_garbage_collection() -> None:
    """Exempt all existing objects from garbage collection.

    Modules, plug-ins and prepared data are some hundred thousand objects; to traverse them would
    stop every virtual user for tens of milliseconds.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
