"""Ships what the engine produced: rows become numbered, sealed blocks in the result stream."""

from __future__ import annotations

import logging
import threading

from osbench.common.blocks import encode_rows
from osbench.common.envelope import Sealer
from osbench.common.errors import OsbenchError
from osbench.common.messages import Block
from osbench.common.store import Store
from osbench.worker.engine import Engine
from osbench.worker.outbox import Outbox

LOG = logging.getLogger(__name__)

#: Most rows of one block.
BLOCK_ROWS = 50_000
#: Shortest time between two shipments, seconds, and the first of a growing series.
SHORTEST_S = 0.01


class Shipper:
    """Background thread of one run in one worker process."""

    def __init__(
        self,
        *,
        run: str,
        epoch: str,
        incarnation: str,
        store: Store,
        sealer: Sealer,
        outbox: Outbox,
    ) -> None:
        self._run = run
        self._epoch = epoch
        self._incarnation = incarnation
        self._store = store
        self._sealer = sealer
        self.outbox = outbox
        self._engine: Engine | None = None
        self._workload = -1
        self._interval_s = SHORTEST_S
        self._longest_s = 0.2
        self._cut_sent = 0
        self._want_sent = 0
        self._resend = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="shipper", daemon=True)
        self._thread.start()

    def serve(self, engine: Engine, workload: int, interval_s: float) -> None:
        """Ship the results of an engine, at most every `interval_s` once it is under way."""
        with self._lock:
            self._engine, self._workload = engine, workload
            self._interval_s, self._longest_s = SHORTEST_S, interval_s
            self._cut_sent = self._want_sent = 0

    def wake(self) -> None:
        """Ship soon: somebody waits for what we have."""
        self._wake.set()

    def flush(self) -> None:
        """Put everything the engine has into blocks now, and try to send it."""
        with self._lock:
            try:
                self._ship()
            except OsbenchError as error:
                LOG.warning("results are kept here for now: %s", error)

    def close(self) -> None:
        """End the thread; what is unacknowledged stays in the outbox."""
        self._ended = True
        self._wake.set()
        self._thread.join(timeout=5)

    def _loop(self) -> None:
        pause = threading.Event()
        while not self._ended:
            self._wake.wait(self._interval_s)
            pause.wait(SHORTEST_S / 2)
            self._wake.clear()
            before = self.outbox.number()
            self.flush()
            # the first results of a workload travel fast: the coordinator sizes batches by them
            if self.outbox.number() > before:
                self._interval_s = min(self._interval_s * 2, self._longest_s)

    def _ship(self) -> None:
        engine = self._engine
        if self._resend:
            self._send_again()
        if engine is None:
            return
        while True:
            # numbers given back first: a row of theirs cannot come later
            returned = engine.returned()
            rows = engine.rows[:BLOCK_ROWS]
            del engine.rows[: len(rows)]
            failures = engine.body.failures
            # rows were appended after their failure was numbered: none is missing here
            fresh, cut, want = failures.fresh(), failures.cut, engine.want_ns
            if not (rows or returned or fresh or want != self._want_sent):
                return
            columns = encode_rows(rows, engine.body.names.names, engine.t0_ns) if rows else {}
            block = Block(
                run=self._run,
                epoch=self._epoch,
                incarnation=self._incarnation,
                number=self.outbox.number(),
                workload=self._workload,
                columns=columns,
                returned=returned,
                failures=fresh,
                want_ns=want - self._want_sent,
                cut=cut - self._cut_sent,
            )
            self._want_sent, self._cut_sent = want, cut
            data = self._sealer.seal(Block.KIND, block.body())
            self.outbox.put(data)
            self._send(data)
            if len(rows) < BLOCK_ROWS:
                return

    def _send(self, data: bytes) -> None:
        if self._resend:
            return
        try:
            self._store.append(data)
        except OsbenchError:
            # also where it is refused: a block must not be missing between its neighbours
            self._resend = True
            raise

    def _send_again(self) -> None:
        for data in self.outbox.unacknowledged():
            self._store.append(data)
        self._resend = False
