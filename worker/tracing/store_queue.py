"""A bounded queue, and the thread that writes its items to the trace store.

Threads that are traced only append to the queue, whatever the state of the store. An unreachable
store is tried again; spans wait up to a limit, beyond which they are dropped and counted. Imports
nothing of osbench: the driver for services under test has this file, too (deploy/osprofiler).
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

LOG = logging.getLogger(__name__)

_INTERVAL_S = 0.05
_BACKOFF_S = (0.1, 5.0)
#: Least time between two warnings, seconds.
_WARN_S = 60.0

#: Spans (or events) per pipeline, at least and at most: few while few are waiting, so that the
#: interpreter's lock is never held for long.
_FEWEST, _MOST = 64, 2048

T = TypeVar("T")


class StoreConnection(Protocol):
    """The interface of a connection to the trace store, as `SpanStore` has it."""

    #: The store's address for messages.
    place: str

    def connect(self) -> None:
        """Open the connection unless it is open. Raises OSError if that fails."""

    def send(self, commands: bytes, replies: int) -> list[str | None]:
        """Send commands; return for each of `replies` replies None (success) or its error code.

        Raises OSError if the connection fails, and closes it.
        """

    def close(self) -> None:
        """Close the connection, if there is one."""


class Parcel(NamedTuple):
    """Commands that write spans of one trace, with the number of replies to them."""

    #: In the store's protocol.
    commands: str
    #: Replies to them; the first one says whether the spans are stored.
    replies: int
    #: Spans or events in them.
    spans: int
    trace: str = ""
    #: Spans or events of which the commands say that they were dropped.
    dropped: int = 0


class StoreQueue(Generic[T]):
    """A bounded queue of items, and the thread that writes them to the trace store.

    An item is a trace, or an event of a service under test.
    """

    def __init__(
        self,
        store: StoreConnection,
        pack: Callable[[list[T]], list[Parcel]],
        limit: int,
        lost: Callable[[Parcel, str], None] = lambda parcel, refusal: None,
    ) -> None:
        """Create the queue; `pack` converts items, or none, to commands, in the queue's thread.

        `limit` bounds the total size of all waiting items, in the unit of `put`. `lost` is called
        with each parcel that the store has not taken, and its error code, "" if it did not reply.
        """
        self._store = store
        self._pack = pack
        self._limit = limit
        self._tell_lost = lost
        self._items: deque[tuple[T, int, int]] = deque()
        # Threads add to the first three without a lock: the interpreter switches threads at calls
        # and jumps back, never within `+=` on an attribute.
        self._offered = self._refused = self._entered = 0
        self._written = self._lost = self._left = 0
        self._error = ""
        self._pause_s = 0.0
        self._warned_at = -_WARN_S
        self._told_away = False
        self._told_dropped = 0
        self._stop_by: float | None = None
        self._wake = threading.Event()
        self._closed = False
        self._starts = itertools.count()
        self._thread = threading.Thread(target=self._run, name="osbench-spans", daemon=True)

    def start(self) -> None:
        """Start the thread at the first call; later calls do nothing.

        Raises RuntimeError if no thread can be started; all items are dropped then.
        """
        # no lock, which a process forked at that moment would find held for ever
        if next(self._starts) == 0:
            try:
                self._thread.start()
            except RuntimeError:
                self._closed = True
                raise

    def put(self, item: T, count: int, size: int) -> bool:
        """Queue an item of `count` spans, or drop it and count them.

        It is dropped beyond the limit, and after `close`. `size` counts towards the limit. Returns
        whether the item was queued. Never waits.
        """
        self._offered += count
        self._entered += size
        if self._closed or self._entered - self._left > self._limit:
            self._entered -= size
            self._refused += count
            return False
        self._items.append((item, count, size))
        return True

    def refuse(self, count: int) -> None:
        """Count `count` spans, which the caller cannot write at all, as dropped."""
        self._offered += count
        self._refused += count

    def stats(self) -> dict[str, Any]:
        """Return counts of spans `written`, `dropped` and `waiting`, and the last `error` or ""."""
        waiting, dropped = self._waiting(), self._refused + self._lost
        if self._closed:
            waiting, dropped = 0, dropped + waiting
        return {
            "written": self._written,
            "dropped": dropped,
            "waiting": waiting,
            "error": self._error,
        }

    def close(self, timeout_s: float) -> None:
        """Write waiting items, for at most `timeout_s` seconds; drop the rest, end the thread.

        Items that come later are dropped and counted.
        """
        self._stop_by = time.monotonic() + timeout_s
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        self._closed = True
        self._items.clear()

    def _run(self) -> None:
        while True:
            # read before the queue: items added in between are taken in the next round
            closing = self._stop_by is not None
            batch = self._take()
            if self._settle(batch) or batch:
                continue
            if closing:
                break
            self._wake.wait(_INTERVAL_S)
        self._store.close()

    def _waiting(self) -> int:
        return self._offered - self._refused - self._written - self._lost

    def _take(self) -> list[tuple[T, int, int]]:
        wanted = min(max(_FEWEST, self._waiting() // 8), _MOST)
        batch: list[tuple[T, int, int]] = []
        # only one thread takes from the queue, but `close` may clear it at any time
        with contextlib.suppress(IndexError):
            while wanted > 0:
                taken = self._items.popleft()
                wanted -= taken[1]
                batch.append(taken)
        return batch

    def _settle(self, batch: list[tuple[T, int, int]]) -> bool:
        """Write a batch and count its spans as written or lost; return whether the store replied.

        A batch is not written again after an error; `lost` is called with each parcel that is not
        stored. Errors are logged, at most one a minute.
        """
        parcels: list[Parcel] = []
        answers: list[str | None] = []
        try:
            parcels = self._pack([item for item, _, _ in batch])
            if parcels:
                commands = "".join([parcel.commands for parcel in parcels])
                answers = self._deliver(commands, sum(parcel.replies for parcel in parcels))
        except Exception as error:  # noqa: BLE001 - an error in one batch must not stop the next
            self._failed(f"{type(error).__name__} while writing spans")
        written = at = 0
        for parcel in parcels:
            refusal = answers[at] if answers else ""
            if refusal is None:
                written += parcel.spans
            else:
                self._tell_lost(parcel, refusal)
            at += parcel.replies
        self._written += written
        self._lost += sum(count for _, count, _ in batch) - written
        self._left += sum(size for _, _, size in batch)
        refusals = [response for response in answers if response is not None]
        if refusals:
            self._failed(f"spans are refused: {refusals[0]}")
        elif answers:
            self._succeeded()
        return bool(answers)

    def _deliver(self, commands: str, replies: int) -> list[str | None]:
        """Send commands and return the store's replies; [] if the batch is to be dropped.

        Tries to connect until it succeeds or `close` is called. A failed send is repeated once, but
        not after a timeout: most likely the spans are stored then.
        """
        tries = 0
        while True:
            self._wake.wait(self._pause_s)
            try:
                self._store.connect()
            except OSError as error:
                self._failed(str(error) or type(error).__name__)
                if self._stop_by is not None:
                    return []
                continue
            try:
                return self._store.send(commands.encode(), replies)
            except OSError as error:
                tries += 1
                # After a timeout the spans are most likely stored. A connection may have been
                # closed because it was idle; readers ignore events that are stored twice.
                if tries == 2 or isinstance(error, TimeoutError):
                    self._failed(str(error) or type(error).__name__)
                    return []

    def _failed(self, why: str) -> None:
        if not self._pause_s and self._may_warn():
            LOG.warning("Trace store %s: %s; spans may be dropped", self._store.place, why)
            self._told_away = True
        self._error = why
        self._pause_s = min(max(self._pause_s * 2, _BACKOFF_S[0]), _BACKOFF_S[1])

    def _succeeded(self) -> None:
        dropped = self._refused + self._lost
        if self._pause_s and self._told_away:
            LOG.info("Trace store %s is available again", self._store.place)
            self._told_away = False
        if dropped > self._told_dropped and self._may_warn():
            LOG.warning("Trace store %s: %d spans or events dropped", self._store.place, dropped)
            self._told_dropped = dropped
        self._pause_s = 0.0

    def _may_warn(self) -> bool:
        now = time.monotonic()
        if now - self._warned_at < _WARN_S:
            return False
        self._warned_at = now
        return True
