"""Packs the results of a membership into numbered, signed blocks for the result stream.

A membership is a worker process's part in one run.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.ports import threads as threading
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Block
from osbench.common.protocol.store import Store
from osbench.common.values.intervals import Interval, Intervals
from osbench.worker.engine.engine import Engine
from osbench.worker.session.log_book import LogBook
from osbench.worker.session.outbox import Outbox
from osbench.worker.session.result_source import ResultSource
from osbench.worker.tracing.span_buffer import SpanBuffer

LOG = logging.getLogger(__name__)

#: Shortest time between two shipments, seconds; the interval starts with it and doubles.
SHORTEST_S = 0.01


class Shipper:
    """Background thread of one membership: makes its result blocks, and sends them.

    `patience_s` returns the longest time between two attempts to send a block, seconds.
    """

    def __init__(  # noqa: PLR0913 - named, and each is another part of the worker
        self,
        *,
        run: str,
        incarnation: str,
        membership: str,
        store: Store,
        signer: Signer,
        outbox: Outbox,
        log: LogBook,
        patience_s: Callable[[], float],
        spans: SpanBuffer | None = None,
    ) -> None:
        self._header: dict[str, Any] = {
            "run": run,
            "incarnation": incarnation,
            "membership": membership,
        }
        self._store = store
        self._signer = signer
        self.outbox = outbox
        self._log = log
        self._spans = spans
        self._patience_s = patience_s
        #: The engine that is served, and earlier ones that still have iterations.
        self._sources: list[ResultSource] = []
        #: Numbers by workload, and batches, that go back without having been in an engine.
        self._returned: dict[int, Intervals] = defaultdict(Intervals)
        self._voids: list[int] = []
        self._final = False
        self._interval_s = self._longest_s = 0.2
        self._away = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._loop, name="shipper", daemon=True)
        self._thread.start()

    def serve(self, engine: Engine, workload: int, interval_s: float) -> None:
        """Ship the results of an engine from now on: soon, then at intervals up to `interval_s` s.

        Earlier engines are served until they have ended and all their results are in blocks.
        """
        with self._lock:
            self._sources.append(ResultSource(engine, workload))
            self._interval_s, self._longest_s = SHORTEST_S, interval_s
        self._wake.set()

    def give_back(self, workload: int, numbers: Iterable[Interval]) -> None:
        """Queue iteration numbers that no engine has had: the next block returns them, soon."""
        with self._lock:
            self._returned[workload].update(numbers)
        self._wake.set()

    def reject(self, seqs: Iterable[int]) -> None:
        """Queue the rejection of batches for the next block, soon: they will never be taken.

        `seqs` are their sequence numbers.
        """
        with self._lock:
            self._voids += seqs
        self._wake.set()

    def wake(self) -> None:
        """Make the thread pack and send blocks soon, as results are awaited; returns at once."""
        self._wake.set()

    def pack(self) -> None:
        """Put all present results into blocks in the outbox, without sending them.

        Log entries and spans go into blocks, too. Does nothing after `finish`.
        """
        with self._lock:
            self._pack()

    def finish(self) -> None:
        """Put the remaining results into blocks and make the last block, marked as final.

        Sends nothing. No block is made after it; further calls do nothing.
        """
        with self._lock:
            self._pack(final=True)
            if not self._final:
                self._put({"workload": -1, "final": True})
                self._final = True

    def flush(self) -> None:
        """Put all present results into blocks and try to send them; log errors of Redis.

        Unsent blocks stay in the outbox.
        """
        # also while the store is unreachable: packed results take a tenth of the memory
        self.pack()
        try:
            self.outbox.send(self._store, self._patience_s())
        except OsbenchError as error:
            LOG.log(
                logging.DEBUG if self._away else logging.WARNING,
                "results cannot be sent and are kept: %s",
                error,
            )
            self._away = True
        else:
            self._away = False

    def close(self) -> None:
        """End the thread, waiting at most five seconds; undelivered blocks stay in the outbox."""
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

    def _pack(self, *, final: bool = False) -> None:
        if self._final:
            return
        for source in list(self._sources):
            exhausted = source.exhausted
            while self._pack_source(source):
                pass
            if exhausted:
                self._sources.remove(source)
        for workload in list(self._returned):
            self._put({"workload": workload, "returned": list(self._returned[workload])})
            del self._returned[workload]
        entries, cut = self._log.take(final=final)
        if entries or cut:
            self._put({"workload": -1, "log": entries, "log_cut": cut})
        while self._spans is not None and (spans := self._spans.take()):
            self._put({"workload": -1, "spans": spans})
        if self._voids:
            self._put({"workload": -1, "voids": list(self._voids)})
            self._voids.clear()

    def _pack_source(self, source: ResultSource) -> bool:
        """Put a block of an engine's results into the outbox; return whether results are left over.

        Returns False without a block if there are no results.
        """
        contents = source.contents()
        if contents is None:
            return False
        self._put(contents.fields)
        # after the block is kept, so that an error before this point loses nothing
        source.stored(contents)
        return not contents.whole

    def _put(self, fields: dict[str, Any]) -> None:
        block = Block(**self._header, number=self.outbox.number(), **fields)
        self.outbox.put(self._signer.sign(Block.KIND, block.body()))
