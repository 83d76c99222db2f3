"""Claims batches in advance, by the rate at which this worker processes iterations."""

from __future__ import annotations

import logging
import threading
import time
from time import monotonic_ns

from osbench.common.errors import OsbenchError
from osbench.common.protocol.messages import Batch
from osbench.common.protocol.store import Store
from osbench.worker.engine.engine import Engine
from osbench.worker.engine.open_engine import OpenEngine
from osbench.worker.session.intake import Intake

LOG = logging.getLogger(__name__)

#: Work claimed ahead, seconds: closed runners by rate, open ones by due instant.
AHEAD_S = 2.0
AHEAD_OPEN_S = 15.0
#: Shortest time over which the rate is measured, nanoseconds; the longest is twice that.
WINDOW_NS = 1_000_000_000

#: An instant, with the iterations done and the nanoseconds waited until then.
Mark = tuple[int, int, int]


class Claimer:
    """Background thread of one run in one worker process. Owns the intake."""

    def __init__(self, *, intake: Intake, epoch: str, incarnation: str, store: Store) -> None:
        self._intake = intake
        self._epoch = epoch
        self._incarnation = incarnation
        self._store = store
        self._engine: Engine | None = None
        self._taken = 0
        #: The rate is measured from `_before`; `_mark` takes its place.
        self._before: Mark = (0, 0, 0)
        self._mark: Mark = (0, 0, 0)
        self.server_run_id = ""
        #: Nothing is claimed while this is set.
        self.paused = False
        self._lock = threading.Lock()
        self._need = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="claimer", daemon=True)
        self._thread.start()

    def offer(self, batch: Batch) -> str:
        """Take a verified batch; returns why it is refused, or ""."""
        with self._lock:
            refusal = self._intake.offer(batch)
        self._need.set()
        return refusal

    def serve(self, engine: Engine, workload: int) -> None:
        """Claim for an engine from now on."""
        with self._lock:
            self._engine, self._taken = engine, 0
            self._before = self._mark = (max(engine.t0_ns, monotonic_ns()), 0, 0)
            self._intake.serve(workload)
        self._need.set()

    def wake(self) -> None:
        """Claim now, because the engine runs out of work."""
        self._need.set()

    def pause(self) -> None:
        """Claim nothing more; returns when no claim is in progress.

        Claims whose reply was lost are repeated until there is a reply. Batches that turn out to
        be claimed by this worker go to the engine, which gives them back.
        """
        self.paused = True
        with self._lock:
            self._intake.clear()

    @property
    def unsure(self) -> bool:
        """There are claims without a reply."""
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
                LOG.warning("cannot claim now: %s", error)
                time.sleep(0.2)
            except Exception:
                LOG.exception("internal error in claiming; it continues")
                time.sleep(0.2)

    def _claim(self) -> bool:
        engine = self._engine
        if engine is None or not len(self._intake):
            return False
        wanted = self._intake.unanswered() or self._wanted(engine)
        if not wanted:
            return False
        owners = self._store.claim(
            self._epoch, self.server_run_id, self._incarnation, self._intake.ask(wanted)
        )
        if owners is None:
            # another epoch, or Redis has restarted: the coordinator decides what to do
            return False
        for batch in self._intake.settle(wanted, owners):
            self._taken += len(batch)
            if engine.body.feed is not None:
                engine.body.feed(batch)
            engine.add(batch)
        return True

    def _wanted(self, engine: Engine) -> list[Batch]:
        now = monotonic_ns()
        if self.paused or now >= engine.stop_ns:
            return []
        if isinstance(engine, OpenEngine):
            return self._intake.due_before(now - engine.t0_ns + int(AHEAD_OPEN_S * 1e9))
        return self._intake.first(self._ahead(engine, now) - engine.queued)

    def _ahead(self, engine: Engine, now: int) -> int:
        """Numbers that should be queued in the engine: as many as it processes in `AHEAD_S`."""
        share, want_ns = engine.share, engine.want_ns
        if not share:
            return 0
        done = self._taken - engine.queued - len(engine.inflight)
        if done <= 0:
            # no iteration has ended: each takes at least as long as the load has lasted
            running_s = (now - self._before[0]) / 1e9
            return share if running_s < AHEAD_S else max(1, int(share * AHEAD_S / running_s))
        if now - self._mark[0] >= WINDOW_NS and done - self._mark[1] >= share:
            self._before, self._mark = self._mark, (now, done, want_ns)
        begin, done_before, want_before = self._before
        busy_ns = max(1, now - begin - (want_ns - want_before) // share)
        # the first iterations to end may be the shortest: limits the growth
        rate = (done - done_before) / busy_ns
        return max(1, min(int(rate * AHEAD_S * 1e9), share + 2 * done))
