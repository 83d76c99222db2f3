"""Append-only files of framed records: length and CRC-32 before each, a torn tail is cut."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from osbench.common.errors import OsbenchError

_HEAD = struct.Struct("<II")


class FrameFile:
    """Writes records; `append` returns when they are on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)

    def append(self, records: Iterable[bytes]) -> None:
        """Write records and sync. Raises OsbenchError where they cannot be; then none is there."""
        parts = []
        for record in records:
            parts.append(_HEAD.pack(len(record), zlib.crc32(record)))
            parts.append(record)
        if not parts:
            return
        disk = self._file.fileno()
        before = os.fstat(disk).st_size
        try:
            left = memoryview(b"".join(parts))
            while left:
                left = left[self._file.write(left) :]
            os.fdatasync(disk)
        except OSError as error:
            # a torn record would hide those that follow
            with contextlib.suppress(OSError):
                os.ftruncate(disk, before)
            raise OsbenchError(f"cannot write {self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def bundles(records: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join records, in order, until they have `size` bytes or no more fit."""
    waiting: list[bytes] = []
    held = 0
    for record in records:
        if waiting and held + len(record) > size:
            yield b"".join(waiting)
            waiting, held = [], 0
        waiting.append(record)
        held += len(record)
    if waiting:
        yield b"".join(waiting)


def read_frames(path: Path) -> Iterator[bytes]:
    """The whole records of a file, up to the first torn or damaged one."""
    if not path.exists():
        return
    with path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, crc = _HEAD.unpack(head)
            left -= _HEAD.size + size
            # a damaged length may announce 4 GiB, for which `read` would make room
            record = file.read(size) if left >= 0 else b""
            if len(record) < size or zlib.crc32(record) != crc:
                return
            yield record


def cut_torn_tail(path: Path) -> int:
    """Cut what follows the last whole record; returns the bytes cut."""
    whole = sum(_HEAD.size + len(record) for record in read_frames(path))
    excess = path.stat().st_size - whole if path.exists() else 0
    if excess:
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())
    return excess
