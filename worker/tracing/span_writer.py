"""Writes the spans of a worker process to the trace store, in a separate thread."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from osbench.worker.tracing.span_events import REPLIES, EventFormat, Trace, WallClock
from osbench.worker.tracing.span_store import SpanStore
from osbench.worker.tracing.store_queue import Parcel, StoreQueue

_TIMEOUT_S = 2.0


class SpanWriter:
    """Writes finished traces to a Redis, from a separate thread that it starts when it is made."""

    def __init__(
        self,
        conn_str: str,
        expiry_s: int,
        queue_limit_spans: int,
        to_wall_ns: Callable[[int], int] | None = None,
        service: str = "worker",
    ) -> None:
        """Start the thread. `to_wall_ns` converts monotonic to wall-clock ns; None: by the host.

        Redis keeps a trace for `expiry_s` seconds. At most `queue_limit_spans` wait. Raises
        ValueError for a store that is not supported or a malformed connection string.
        """
        store = SpanStore(conn_str, _TIMEOUT_S)
        self._format = EventFormat(
            socket.gethostname(), service, expiry_s, to_wall_ns or WallClock()
        )
        self._queue = StoreQueue(store, self._pack, queue_limit_spans)
        self._queue.start()

    @staticmethod
    def supports(conn_str: str) -> bool:
        """Return whether spans can be written to this store: a Redis by TCP, TLS or unix socket.

        Judged by the connection string alone, without connecting.
        """
        try:
            SpanStore(conn_str, _TIMEOUT_S)
        except ValueError:
            return False
        return True

    def put(self, trace: Trace) -> None:
        """Queue a finished trace, or drop it and count its spans if too many wait. Never waits."""
        spans = len(trace[1])
        self._queue.put(trace, spans, spans)

    def stats(self) -> dict[str, Any]:
        """Return counts of spans `written`, `dropped` and `waiting`, and the last `error` or ""."""
        return self._queue.stats()

    def close(self, timeout_s: float) -> None:
        """Write the waiting spans, for at most `timeout_s` seconds; drop the rest.

        The thread ends.
        """
        self._queue.close(timeout_s)

    def _pack(self, traces: list[Trace]) -> list[Parcel]:
        return [Parcel(self._format.commands(trace), REPLIES, len(trace[1])) for trace in traces]
