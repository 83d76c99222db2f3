"""Ships results: packs rows of the engine into numbered, sealed blocks of the result stream."""

from __future__ import annotations

import logging
import threading
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.intervals import Interval
from osbench.common.protocol.blocks import Row, encode_rows
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.messages import Block
from osbench.common.protocol.store import Store
from osbench.worker.engine.engine import Engine
from osbench.worker.engine.failures import printable
from osbench.worker.session.outbox import Outbox

LOG = logging.getLogger(__name__)

#: Most rows, and most bytes of outputs, of one block.
BLOCK_ROWS = 50_000
BLOCK_BYTES = 8 << 20
#: Shortest time between two shipments, seconds; the interval starts with it and doubles.
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
        #: Taken from the engine and not in a block yet; then the action names as they are sent.
        self._returned: list[Interval] = []
        self._fresh: list[list[Any]] = []
        self._names: list[str] = []
        #: A block could not be sent: all unacknowledged blocks are sent again, in order.
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
            self._returned, self._fresh, self._names = [], [], []

    def wake(self) -> None:
        """Ship soon, because the coordinator waits for results."""
        self._wake.set()

    def flush(self) -> None:
        """Put everything the engine has into blocks now, and try to send them."""
        with self._lock:
            if self._resend:
                self._send_again()
            engine = self._engine
            # also while the store is unreachable: packed results take a tenth of the memory
            while engine is not None and self._pack(engine):
                pass

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
            try:
                self.flush()
            except Exception:
                LOG.exception("internal error in shipping; results are kept")
            # the first results are sent soon, because the coordinator sizes batches by them
            if self.outbox.number() > before:
                self._interval_s = min(self._interval_s * 2, self._longest_s)

    def _pack(self, engine: Engine) -> bool:
        """Pack results of the engine into a block; False if no rows were left over."""
        waiting = len(engine.rows)
        # returned numbers first: no row for them can be added later
        self._returned += engine.returned()
        rows = _first(engine.rows, bulky=engine.bulky)
        failures = engine.body.failures
        # a failure is numbered before its row is appended, so none is missing here
        self._fresh += failures.fresh()
        cut, want = failures.cut, engine.want_ns
        if not (rows or self._returned or self._fresh or want != self._want_sent):
            return False
        block = Block(
            run=self._run,
            epoch=self._epoch,
            incarnation=self._incarnation,
            number=self.outbox.number(),
            workload=self._workload,
            columns=encode_rows(rows, self._clean_names(engine), engine.t0_ns) if rows else {},
            returned=self._returned,
            failures=self._fresh,
            want_ns=want - self._want_sent,
            cut=cut - self._cut_sent,
        )
        data = self._sealer.seal(Block.KIND, block.body())
        self.outbox.put(data)
        # after the block is stored, so that an error before this point loses nothing
        del engine.rows[: len(rows)]
        engine.shipped += len(rows) + sum(high - low for low, high in self._returned)
        self._returned, self._fresh = [], []
        self._want_sent, self._cut_sent = want, cut
        if not self._resend:
            self._send(data)
        return len(rows) < waiting

    def _clean_names(self, engine: Engine) -> list[str]:
        names = engine.action_names
        self._names += map(printable, names[len(self._names) :])
        return self._names

    def _send(self, data: bytes) -> None:
        # set unless the block is sent: blocks must not arrive out of order
        self._resend = True
        try:
            self._store.append(data)
        except OsbenchError as error:
            LOG.warning("results cannot be sent and are kept: %s", error)
        else:
            self._resend = False

    def _send_again(self) -> None:
        try:
            for data in self.outbox.unacknowledged():
                self._store.append(data)
        except OsbenchError as error:
            LOG.debug("results still cannot be sent: %s", error)
        else:
            self._resend = False


def _first(rows: list[Row], *, bulky: bool) -> list[Row]:
    """The rows of the next block, limited by `BLOCK_ROWS` and `BLOCK_BYTES`."""
    found = rows[:BLOCK_ROWS]
    if not bulky:
        return found
    room = BLOCK_BYTES
    for at, row in enumerate(found):
        outputs = row[8][1] if row[8] is not None else None
        room -= sum(map(len, outputs)) if outputs else 0
        if room < 0 and at:
            return found[:at]
    return found
