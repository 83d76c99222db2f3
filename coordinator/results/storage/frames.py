"""Append-only files of records, each behind its length and CRC-32; a torn last record is cut."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from osbench.common.errors import DamagedRun, DirectoryRemoved, OsbenchError, StorageError
from osbench.common.files.regular_files import open_regular
from osbench.common.ports import disk

_HEAD = struct.Struct("<II")
#: Behind a damaged record, others are looked for in so many bytes, each of this size at most.
SEARCHED_BYTES = 16 << 20
LARGEST_BYTES = 4 << 20
#: How much is compared with checksums for that.
COMPARED_BYTES = 256 << 20


def reason_of(error: OSError) -> str:
    """Return the reason of an error in lower case, for messages: "no space left on device"."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


class FrameFile:
    """A file to which records are appended, each behind its length and checksum.

    `append` returns when they are on disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        #: Bytes of whole records that are on disk.
        self.size = os.fstat(self._file.fileno()).st_size
        #: There may be a torn record behind `size`, which would hide later records.
        self._torn = False

    def append(self, records: Iterable[bytes]) -> None:
        """Append records and wait until they are on disk.

        Raises StorageError if that fails; then none of them is in the file. Raises
        DirectoryRemoved, a StorageError, if the file was deleted: no reader would find the records.
        """
        parts = []
        for record in records:
            parts.append(_HEAD.pack(len(record), zlib.crc32(record)))
            parts.append(record)
        if not parts:
            return
        descriptor, data = self._file.fileno(), b"".join(parts)
        try:
            if self._torn:
                os.ftruncate(descriptor, self.size)
            self._torn = True
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            disk.fdatasync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, self.size)
            raise StorageError(
                f"cannot write {self.path}: {reason_of(error)}; make room there"
            ) from None
        if not os.fstat(descriptor).st_nlink:
            raise DirectoryRemoved(f"cannot write {self.path}: the run directory was removed")
        self.size += len(data)
        self._torn = False

    def close(self) -> None:
        """Close the file; all appended records are on disk already."""
        self._file.close()


def bundles(records: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join consecutive records to byte strings of at most `size` bytes; yields them in order.

    A record larger than `size` is yielded alone.
    """
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


def placed_frames(
    path: Path, begin: int = 0, *, tolerant: bool = False, least: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, record) of each complete record, up to a torn one at the end of the file.

    `begin` is the offset of the first record to read. A missing file has no records. Raises
    DamagedRun for a damaged record with complete ones behind it, or within the `least` bytes that
    were on disk before: a crash does not leave such a file. `tolerant` skips damaged records
    instead. Raises OsbenchError if the file cannot be opened.
    """
    if not path.exists():
        return
    try:
        file = open_regular(path)
    except OSError as error:
        raise OsbenchError(
            f"cannot read {path}: {error.strerror}; restore it, or make it readable"
        ) from None
    with file:
        # what a writer appends meanwhile is not behind a torn record
        end = os.fstat(file.fileno()).st_size
        file.seek(begin)
        while True:
            offset = file.tell()
            record = _next_record(file, end)
            if record is not None:
                yield offset, record
                continue
            found = _whole_behind(file, offset, end)
            if not tolerant and (found is not None or offset < least):
                raise DamagedRun(f"{path} is damaged at byte {offset}")
            if found is None:
                return
            file.seek(found)


def behind(offset: int, record: bytes) -> int:
    """Return the offset of the next record, from the offset and the content of a record."""
    return offset + _HEAD.size + len(record)


def _next_record(file: BinaryIO, end: int) -> bytes | None:
    """Return the record at the file's position, and move behind it.

    None if it is missing, damaged or incomplete at offset `end`. A file system may leave zeros
    behind the last write before a crash: no record is empty.
    """
    head = file.read(max(0, min(_HEAD.size, end - file.tell())))
    if len(head) < _HEAD.size:
        return None
    size, crc = _HEAD.unpack(head)
    # a damaged length may announce 4 GiB, for which `read` would make room
    left = end - file.tell()
    record = file.read(size) if size <= left else b""
    whole = size and len(record) == size and zlib.crc32(record) == crc
    return record if whole else None


def _whole_behind(file: BinaryIO, offset: int, end: int) -> int | None:
    """Return the offset of the first complete record behind a damaged one at `offset`, or None.

    The length of the damaged record may be wrong: its end is unknown, so every byte within
    `SEARCHED_BYTES` may begin the next record. After `COMPARED_BYTES` of checksums a candidate
    counts as complete.
    """
    file.seek(offset)
    data = file.read(max(0, min(end - offset, SEARCHED_BYTES)))
    if len(data) <= _HEAD.size or not any(data[: _HEAD.size]):
        # nothing, or zeros behind the last write
        return None
    left = COMPARED_BYTES
    for at in _plausible_heads(data):
        size, crc = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size
        left -= size
        if left < 0 or zlib.crc32(memoryview(data)[begin : begin + size]) == crc:
            return offset + at
    return None


def _plausible_heads(data: bytes) -> list[int]:
    """Return the offsets above 0 at which a record may begin, judged by plausible lengths only.

    A candidate has at most `LARGEST_BYTES`, and ends in the last bytes of `data` or at a plausible
    length.
    """
    sizes = np.zeros(len(data) + 1, np.int64)
    for shift in range(min(4, len(data) - 3)):
        part = np.frombuffer(data, "<u4", (len(data) - shift) // 4, shift)
        sizes[shift : shift + 4 * len(part) : 4] = part
    sizes[sizes > LARGEST_BYTES] = 0
    # what ends the data, or ends before a torn head, needs nothing behind it
    sizes[-4:] = 1
    at = np.flatnonzero(sizes[1 : -_HEAD.size]) + 1
    ends = at + _HEAD.size + sizes[at]
    at, ends = at[ends <= len(data)], ends[ends <= len(data)]
    return list(at[sizes[ends] > 0].tolist())


def read_frames(path: Path, *, least: int = 0) -> Iterator[bytes]:
    """Yield the complete records of a file, up to a torn one at its end; none if it is missing.

    The first `least` bytes are known to have been complete. Raises DamagedRun for other damage,
    OsbenchError if the file cannot be opened.
    """
    for _, record in placed_frames(path, least=least):
        yield record


def cut_torn_tail(path: Path, *, least: int = 0) -> int:
    """Cut the bytes behind the last complete record; returns their number, 0 if none are cut.

    Raises DamagedRun if complete records follow a damaged one, or if damage is within the `least`
    bytes that are known to have been complete; OsbenchError if the file cannot be opened.
    """
    whole = sum(_HEAD.size + len(record) for record in read_frames(path, least=least))
    excess = path.stat().st_size - whole if path.exists() else 0
    if excess:
        with path.open("r+b") as file:
            file.truncate(whole)
            disk.fsync(file.fileno())
    return excess
