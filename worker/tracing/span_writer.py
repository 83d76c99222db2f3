"""The thread that writes the spans of a process to the trace store.

Iterations only append to a queue, whatever the state of the store. An unreachable store is tried
again; spans wait up to a limit, beyond which they are dropped and counted.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from osbench.worker.tracing.span_events import REPLIES, EventFormat, Trace, WallClock
from osbench.worker.tracing.span_store import SpanStore, StoreRefusal

LOG = logging.getLogger(__name__)

_INTERVAL_S = 0.05
_TIMEOUT_S = 2.0
_BACKOFF_S = (0.1, 5.0)

#: Spans per pipeline, at least and at most: few while few are waiting, so that the interpreter's
#: lock is never held for long.
_FEWEST, _MOST = 64, 2048


class SpanWriter:
    """Writes finished traces to a Redis in a thread of its own."""

    def __init__(
        self,
        conn_str: str,
        expiry_s: int,
        queue_limit_spans: int,
        to_wall_ns: Callable[[int], int] | None = None,
        service: str = "worker",
    ) -> None:
        """`to_wall_ns` turns monotonic into wall-clock nanoseconds.

        Raises ValueError for a store that is not supported or a malformed connection string.
        """
        self._store = SpanStore(conn_str, _TIMEOUT_S)
        self._format = EventFormat(
            socket.gethostname(), service, expiry_s, to_wall_ns or WallClock()
        )
        self._limit = queue_limit_spans
        self._queue: deque[Trace] = deque()
        # Counters of spans. Virtual users add to the first two without a lock: the interpreter
        # switches threads at calls and jumps back, never within `+=` on an attribute.
        self._offered = self._refused = self._written = self._lost = 0
        self._error = ""
        self._pause_s = 0.0
        self._stop_by: float | None = None
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="osbench-spans", daemon=True)
        self._thread.start()

    @staticmethod
    def supports(conn_str: str) -> bool:
        """Whether spans can be written to this store: a Redis, by TCP, TLS or unix socket."""
        try:
            SpanStore(conn_str, _TIMEOUT_S)
        except ValueError:
            return False
        return True

    def put(self, trace: Trace) -> None:
        """Take a finished trace, or drop it if too many spans are waiting. Never waits."""
        spans = len(trace[1])
        self._offered += spans
        if self._closed or self._waiting() > self._limit:
            self._refused += spans
        else:
            self._queue.append(trace)

    def stats(self) -> dict[str, Any]:
        """Spans `written`, `dropped` and `waiting`, and the store's last `error` or ""."""
        waiting = self._waiting()
        dropped = self._refused + self._lost
        if self._closed:
            waiting, dropped = 0, dropped + waiting
        return {
            "written": self._written,
            "dropped": dropped,
            "waiting": waiting,
            "error": self._error,
        }

    def close(self, timeout_s: float) -> None:
        """Write the waiting spans, for at most `timeout_s` seconds; the rest is dropped."""
        self._stop_by = time.monotonic() + timeout_s
        self._wake.set()
        self._thread.join(timeout_s)
        self._closed = True
        self._queue.clear()

    def _run(self) -> None:
        while True:
            # read before the queue: traces added in between are taken in the next round
            closing = self._stop_by is not None
            batch = self._take()
            if batch:
                self._settle(batch)
            elif closing:
                break
            else:
                self._wake.wait(_INTERVAL_S)
        self._store.close()

    def _waiting(self) -> int:
        return self._offered - self._refused - self._written - self._lost

    def _take(self) -> list[Trace]:
        wanted = min(max(_FEWEST, self._waiting() // 8), _MOST)
        batch: list[Trace] = []
        # only one thread takes from the queue, but `close` may clear it at any time
        with contextlib.suppress(IndexError):
            while wanted > 0:
                trace = self._queue.popleft()
                wanted -= len(trace[1])
                batch.append(trace)
        return batch

    def _settle(self, batch: list[Trace]) -> None:
        try:
            commands = "".join(map(self._format.commands, batch))
            answers = self._deliver(commands, REPLIES * len(batch))
        except Exception as error:  # noqa: BLE001 - an error in one batch must not stop the next
            self._failed(f"{type(error).__name__} while writing spans")
            answers = []
        pushed = answers[::REPLIES] or ["unsent"] * len(batch)
        for (_, spans), refusal in zip(batch, pushed, strict=True):
            if refusal is None:
                self._written += len(spans)
            else:
                self._lost += len(spans)
        refusals = [answer for answer in answers if answer is not None]
        if refusals:
            self._failed(f"spans are refused: {refusals[0]}")
        elif answers:
            self._succeeded()

    def _deliver(self, commands: str, replies: int) -> list[str | None]:
        """The store's replies; none if the batch is to be dropped."""
        tries = 0
        while True:
            self._wake.wait(self._pause_s)
            try:
                self._store.connect()
            except (OSError, StoreRefusal) as error:
                self._failed(str(error) or type(error).__name__)
                if self._stop_by is not None:
                    return []
                continue
            try:
                return self._store.send(commands.encode("ascii"), replies)
            except OSError as error:
                tries += 1
                # After a timeout the spans are most likely stored. A connection may have been
                # closed because it was idle; readers ignore events that are stored twice.
                if tries == 2 or isinstance(error, TimeoutError):
                    self._failed(str(error) or type(error).__name__)
                    return []

    def _failed(self, why: str) -> None:
        if not self._pause_s:
            LOG.warning("Trace store %s: %s; spans may be dropped", self._store.place, why)
        self._error = why
        self._pause_s = min(max(self._pause_s * 2, _BACKOFF_S[0]), _BACKOFF_S[1])

    def _succeeded(self) -> None:
        if self._pause_s:
            LOG.warning("Trace store %s is available again", self._store.place)
        self._pause_s = 0.0
