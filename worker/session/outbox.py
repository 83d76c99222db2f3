"""Numbered result blocks, kept until the coordinator has them on disk."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    number: int
    size: int
    #: The sealed block, or None if it is in the spool at `place`.
    data: bytes | None
    place: int = 0


class Outbox:
    """Unacknowledged blocks: in memory up to a limit, then in a spool file.

    Thread-safe. The file is private to this process and removed by `close`. If it cannot be
    written, blocks stay in memory, so that a full disk loses no results.
    """

    def __init__(self, spool: Path, limit_bytes: int) -> None:
        self._spool = spool
        self._limit = limit_bytes
        self._file: FileIO | None = None
        self._kept: deque[_Kept] = deque()
        self._memory = 0
        self._next = 1
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def number(self) -> int:
        """The number of the next block; numbers start at 1 and have no gaps."""
        return self._next

    def put(self, data: bytes) -> None:
        """Keep the sealed block that has the current number."""
        with self._lock:
            kept = _Kept(self._next, len(data), data)
            if self._memory + len(data) > self._limit:
                self._spill(kept, data)
            if kept.data is not None:
                self._memory += len(data)
            self._kept.append(kept)
            self._next += 1

    def acknowledge(self, number: int) -> None:
        """Forget the blocks up to and including a number."""
        with self._lock:
            while self._kept and self._kept[0].number <= number:
                kept = self._kept.popleft()
                if kept.data is not None:
                    self._memory -= kept.size
            if not self._kept and self._file is not None:
                self._file.truncate(0)

    def unacknowledged(self) -> Iterator[bytes]:
        """All unacknowledged blocks in order, to be sent again."""
        with self._lock:
            kept = list(self._kept)
        for block in kept:
            data = self._read(block)
            if data is not None:
                yield data

    def close(self) -> None:
        """Remove the spool file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
                self._spool.unlink(missing_ok=True)

    def _spill(self, kept: _Kept, data: bytes) -> None:
        try:
            if self._file is None:
                self._spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._spool.touch(mode=0o600)
                # unbuffered: data that a full disk refused is not written later
                self._file = self._spool.open("r+b", buffering=0)
            kept.place = self._file.seek(0, 2)
            if self._file.write(data) == len(data):
                kept.data = None
        except OSError as error:
            LOG.warning("results stay in memory, %s cannot be written: %s", self._spool, error)

    def _read(self, block: _Kept) -> bytes | None:
        with self._lock:
            if not self._kept or block.number < self._kept[0].number:
                return None
            if block.data is not None or self._file is None:
                return block.data
            self._file.seek(block.place)
            return self._file.read(block.size)
