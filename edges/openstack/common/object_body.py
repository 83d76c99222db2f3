"""Bodies of large objects that never are in memory as a whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

#: Bytes of a piece.
PIECE = 64 * 1024
#: Bytes after which generated content repeats itself.
PERIOD = 1 << 20


class ObjectBody:
    """A body with a length whose slices are made when they are sent, again for a second attempt.

    Readers of files (`read`) and of slices take it. One thread uses it at a time.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, self._size, PIECE):
            yield self[at : at + PIECE]

    def __getitem__(self, asked: slice) -> bytes:
        """Return the bytes of a slice without a step."""
        first, end, _ = asked.indices(self._size)
        return self.piece(first, max(0, end - first))

    def piece(self, first: int, length: int) -> bytes:
        """Return `length` bytes from position `first` on; subclasses override this."""
        raise NotImplementedError

    def read(self, most: int = -1) -> bytes:
        """Return the next bytes, at most `most` of them, b"" at the end; -1 returns the rest."""
        first = self._at
        self._at = self._size if most < 0 else min(self._size, first + most)
        return self[first : self._at]

    def rewind(self) -> None:
        """Make the next `read` begin at the beginning."""
        self._at = 0

    def sha256(self) -> str:
        """Return the SHA-256 of the body in hexadecimal digits."""
        found = hashlib.sha256()
        for part in self:
            found.update(part)
        return found.hexdigest()


class GeneratedBody(ObjectBody):
    """Random bytes that repeat after `PERIOD`, the same in all bodies of a process."""

    def __init__(self, size: int, offset: int = 0) -> None:
        """`offset`: position in the random bytes with which it begins, so that bodies differ."""
        super().__init__(size)
        self._offset = offset

    def piece(self, first: int, length: int) -> bytes:
        """Return some of the random bytes."""
        block = _random_block()
        at = (self._offset + first) % PERIOD
        if length <= PIECE:
            return block[at : at + length]
        times = (at + length) // PERIOD + 1
        return (block[:PERIOD] * times)[at : at + length]


class ZeroBody(ObjectBody):
    """Zero bytes."""

    def piece(self, first: int, length: int) -> bytes:
        """Return `length` zero bytes."""
        return _ZEROS if length == PIECE else bytes(length)


class FileBody(ObjectBody):
    """The content of an open file, as long as the file was at first."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(os.fstat(file.fileno()).st_size)
        self._file = file

    def piece(self, first: int, length: int) -> bytes:
        """Return bytes of the file; raises ValueError if the file has become shorter."""
        found = os.pread(self._file.fileno(), length, first)
        if len(found) < length:
            # not an OSError, which would be taken for one of the connection
            raise ValueError(f"the file {self._file.name} became shorter while it was sent")
        return found


_ZEROS = bytes(PIECE)


@cache
def _random_block() -> bytes:
    """Return `PERIOD` random bytes, and the first `PIECE` of them again."""
    made = os.urandom(PERIOD)
    return made + made[:PIECE]
