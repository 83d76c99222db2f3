"""Claims batches ahead of need, by the rate at which this worker gets through them."""

from __future__ import annotations

import logging
import threading
from time import monotonic_ns

from osbench.common.errors import OsbenchError
from osbench.common.messages import Batch
from osbench.common.store import Store
from osbench.worker.engine import Engine
from osbench.worker.intake import Intake
from osbench.worker.open import OpenEngine

LOG = logging.getLogger(__name__)

#: Work claimed ahead, seconds: closed runners by rate, open ones by due instant.
AHEAD_S = 2.0
AHEAD_OPEN_S = 15.0


class Claimer:
    """Background thread of one run in one worker process. Owns the intake."""

    def __init__(self, *, intake: Intake, epoch: str, incarnation: str, store: Store) -> None:
        self._intake = intake
        self._epoch = epoch
        self._incarnation = incarnation
        self._store = store
        self._engine: Engine | None = None
        self._taken = 0
        self.boot = ""
        #: Nothing is claimed while this is set.
        self.paused = False
        self._lock = threading.Lock()
        self._need = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="claimer", daemon=True)
        self._thread.start()

    def offer(self, batch: Batch) -> str:
        """Take a verified batch in; answers why it is refused, or ""."""
        with self._lock:
            refusal = self._intake.offer(batch)
        self._need.set()
        return refusal

    def serve(self, engine: Engine, workload: int) -> None:
        """Claim for an engine from now on."""
        with self._lock:
            self._engine, self._taken = engine, 0
            self._intake.serve(workload)
        self._need.set()

    def hungry(self) -> None:
        """Work runs out: look now."""
        self._need.set()

    def pause(self) -> None:
        """Claim nothing more; returns when no claim is under way.

        Claims that had no answer are asked for again until they have: what is ours of them
        goes to the engine, which gives it back.
        """
        self.paused = True
        with self._lock:
            self._intake.clear()

    @property
    def unsure(self) -> bool:
        """There are claims without an answer."""
        with self._lock:
            return bool(self._intake.unanswered())

    def close(self) -> None:
        """End the thread."""
        self._ended = True
        self._need.set()
        self._thread.join(timeout=5)

    def _loop(self) -> None:
        while not self._ended:
            self._need.wait(0.1)
            self._need.clear()
            try:
                with self._lock:
                    while self._claim():
                        pass
            except OsbenchError as error:
                LOG.warning("no claim for now: %s", error)
                threading.Event().wait(0.2)

    def _claim(self) -> bool:
        engine = self._engine
        if engine is None or not len(self._intake):
            return False
        wanted = self._intake.unanswered() or self._wanted(engine)
        if not wanted:
            return False
        owners = self._store.claim(
            self._epoch, self.boot, self._incarnation, self._intake.ask(wanted)
        )
        if owners is None:
            # another epoch, or a Redis that restarted: the coordinator decides what goes on
            return False
        for batch in self._intake.settle(wanted, owners):
            self._taken += len(batch)
            engine.add(batch)
        return True

    def _wanted(self, engine: Engine) -> list[Batch]:
        now = monotonic_ns()
        if self.paused or now >= engine.stop_ns:
            return []
        if isinstance(engine, OpenEngine):
            return self._intake.due_before(now - engine.t0_ns + int(AHEAD_OPEN_S * 1e9))
        queued = engine.queued
        busy_ns = now - engine.t0_ns - engine.want_ns // max(1, engine.share)
        done = self._taken - queued - len(engine.inflight)
        ahead = 2 * engine.share
        if done > 0 and busy_ns > 0:
            ahead = max(engine.share, int(done / busy_ns * AHEAD_S * 1e9))
        return self._intake.first(ahead - queued)
