"""Numbered result blocks, stored and sent until the coordinator has them on disk."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.protocol import timers
from osbench.common.protocol.store import Store

LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    number: int
    size: int
    #: The signed block, or None if it is in the spool at `place`.
    data: bytes | None
    place: int = 0
    #: How often it was sent, the entry of the results that it is in, and when it is sent next,
    #: monotonic seconds.
    sent: int = 0
    entry: str = ""
    due: float = -math.inf


class Outbox:
    """Result blocks that are not acknowledged: in memory up to a limit, then in a spool file.

    Thread-safe. The file is private to this process and removed by `close`. If it cannot be
    written, blocks stay in memory, so that a full disk loses no results.
    """

    def __init__(self, spool: Path, limit_bytes: int) -> None:
        self._spool = spool
        self._limit = limit_bytes
        self._file: FileIO | None = None
        #: By number, ascending.
        self._kept: dict[int, _Kept] = {}
        self._memory = 0
        self._next = 1
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def unsent(self) -> int:
        """Return how many of the blocks were never sent."""
        with self._lock:
            return sum(not kept.sent for kept in self._kept.values())

    @property
    def delivered(self) -> int:
        """Return the highest number up to which all blocks were acknowledged; 0 if none were."""
        with self._lock:
            return next(iter(self._kept), self._next) - 1

    def number(self) -> int:
        """Return the number of the next block; numbers start at 1 and have no gaps."""
        return self._next

    def put(self, data: bytes) -> None:
        """Store a signed block under the next number; it is due at once.

        It stays in memory up to the limit, then goes to the spool file. If the file cannot be
        written, that is logged and the block stays in memory.
        """
        with self._lock:
            kept = _Kept(self._next, len(data), data)
            self._memory += len(data)
            if self._memory > self._limit:
                self._spill(kept)
            self._kept[kept.number] = kept
            self._next += 1

    def acknowledge(self, number: int, have: Iterable[int] = ()) -> None:
        """Drop the blocks up to and including `number`, and the blocks numbered in `have`.

        Unknown numbers are ignored. The spool file is emptied once no block is left.
        """
        with self._lock:
            done = []
            for at in self._kept:
                if at > number:
                    break
                done.append(at)
            done += [at for at in have if at > number and at in self._kept]
            for at in done:
                kept = self._kept.pop(at)
                if kept.data is not None:
                    self._memory -= kept.size
            if not self._kept and self._file is not None:
                self._file.truncate(0)

    def clear(self) -> None:
        """Drop all blocks, as if they were acknowledged."""
        self.acknowledge(self._next)

    def unacknowledged(self) -> Iterator[bytes]:
        """Yield the signed bytes of all unacknowledged blocks, by ascending number."""
        for number in self._numbers():
            data = self._read(number)
            if data is not None:
                yield data

    def send(self, store: Store, most_s: float) -> None:
        """Send the blocks that are due to the result stream: new and still unacknowledged ones.

        A block that was sent is due again after `timers.RESEND_S`, then twice as long each time, at
        most `most_s` seconds. A block replaces its earlier copy in the stream. Raises
        StoreUnreachable, StoreError; unsent blocks stay due.
        """
        with self._sending:
            for number in self._numbers():
                kept = self._kept.get(number)
                if kept is None or time.monotonic() < kept.due:
                    continue
                data = self._read(number)
                if data is not None:
                    kept.entry = store.append(data, instead_of=kept.entry)
                    kept.sent += 1
                    wait_s = timers.RESEND_S * 2.0 ** min(kept.sent - 1, 20)
                    kept.due = time.monotonic() + min(wait_s, most_s)

    def rush(self) -> None:
        """Make all blocks due within `timers.RESEND_S`, because the coordinator is active again.

        Their intervals begin with the shortest one again.
        """
        with self._lock:
            soon = time.monotonic() + timers.RESEND_S
            for kept in self._kept.values():
                kept.sent = min(kept.sent, 1)
                kept.due = min(kept.due, soon)

    def unload(self) -> None:
        """Move all blocks from memory to the spool file; stop, with a warning, if that fails."""
        with self._lock:
            for kept in self._kept.values():
                if kept.data is not None and not self._spill(kept):
                    break

    def close(self) -> None:
        """Close and remove the spool file; blocks in the file are lost, blocks in memory stay."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
                self._spool.unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        with self._lock:
            return list(self._kept)

    def _spill(self, kept: _Kept) -> bool:
        data = kept.data
        assert data is not None
        try:
            if self._file is None:
                self._spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._spool.touch(mode=0o600)
                # unbuffered: data that a full disk refused is not written later
                self._file = self._spool.open("r+b", buffering=0)
            kept.place = self._file.seek(0, 2)
            if self._file.write(data) == len(data):
                kept.data = None
                self._memory -= kept.size
        except OSError as error:
            LOG.warning("results stay in memory, %s cannot be written: %s", self._spool, error)
        return kept.data is None

    def _read(self, number: int) -> bytes | None:
        with self._lock:
            kept = self._kept.get(number)
            if kept is None:
                return None
            if kept.data is not None or self._file is None:
                return kept.data
            self._file.seek(kept.place)
            return self._file.read(kept.size)
