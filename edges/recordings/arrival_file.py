"""Files of arrivals: times and names of requests in compressed blocks, read one at a time.

A file is a line with the version, blocks, an index, and a trailer of fixed size. A block has the
gaps between times and the positions of names, little-endian, byte by byte of equal weight, as one
zstandard frame. The index is MessagePack, and compressed, too.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import msgpack
import numpy as np
import zstandard
from numpy.typing import NDArray

from osbench.common.errors import UsageError
from osbench.common.files.decompression import decompress
from osbench.common.files.regular_files import open_regular

Ints = NDArray[np.int64]

_HEAD = b"osbench arrivals "
_VERSION = 1
_TAIL = b"osbench arrivals end\n"
#: Offset, size and CRC-32 of the index.
_TRAILER = struct.Struct("<QQI")
#: Arrivals of a block.
BLOCK = 1 << 16
#: Bytes of the largest index: that of 10^10 arrivals has some 8 MiB.
_LARGEST_INDEX = 256 << 20
#: Bytes of an arrival in a block, uncompressed, at most: gap and position of the name.
_WIDEST = 8 + 2
#: Names of requests in a file, at most.
MOST_NAMES = 1 << 16
#: Blocks that are kept: arrivals of a lost worker are granted again within two minutes.
_KEPT = 4
#: Bins of the rate over time.
_BINS = 256


class ArrivalFileError(UsageError):
    """A file of arrivals cannot be replayed; the message has the reason and a remedy."""


@dataclass(frozen=True, kw_only=True)
class ArrivalBlock:
    """Index entry of a block of arrivals, by which a reader finds the block.

    It has offset, size and CRC-32 in the file, numbers of its arrivals, and times in microseconds.
    """

    #: Position and bytes in the file.
    offset: int
    size: int
    crc: int
    #: Number of its first arrival, from 0, and how many there are.
    start: int
    count: int
    #: Times of the first and the last of them, microseconds.
    first_us: int
    last_us: int


class ArrivalFile:
    """A file of arrivals for reading, in the order of their times.

    Times are microseconds from the beginning of the recording. The last `_KEPT` blocks that were
    read are cached. Not thread-safe.
    """

    def __init__(self, path: Path) -> None:
        """Open the file and read its index; blocks are read when needed.

        Raises ArrivalFileError if it is unreadable, damaged or of another kind or version. The file
        stays open as long as this object lives.
        """
        self.path = path
        self._kept: OrderedDict[int, tuple[Ints, Ints]] = OrderedDict()
        try:
            with open_regular(path) as file:
                index = _index(file)
                # an own descriptor: the file is read until the run ends, even if it is removed
                self._descriptor = os.dup(file.fileno())
        except OSError as error:
            raise ArrivalFileError(
                f"cannot read {path}: {error.strerror or error}; give a file of `osbench-coord "
                "init --from-access-log`"
            ) from None
        except ArrivalFileError as error:
            raise ArrivalFileError(f"{path} {error}") from None
        weakref.finalize(self, os.close, self._descriptor)
        #: Names of the requests of arrivals; an arrival has the position of its name.
        self.names: tuple[str, ...] = index.names
        #: How many arrivals have each name.
        self.shares: tuple[int, ...] = index.shares
        #: When the recorded time ends, microseconds.
        self.span_us = index.span_us
        self._blocks = index.blocks
        self._starts = np.array([block.start for block in index.blocks], np.int64)
        self._lasts = np.array([block.last_us for block in index.blocks], np.int64)
        #: Arrivals in each of equal bins of the span.
        self.bins: Sequence[int] = index.bins

    @property
    def count(self) -> int:
        """Return the number of arrivals in the file."""
        return self._blocks[-1].start + self._blocks[-1].count

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex; the first access reads the whole file."""
        found = hashlib.sha256()
        position = 0
        while piece := os.pread(self._descriptor, 1 << 20, position):
            found.update(piece)
            position += len(piece)
        return found.hexdigest()

    def instants(self, start: int, stop: int) -> Ints:
        """Return the times of arrivals `start` to `stop` - 1 in microseconds, as an array.

        Times count from the beginning of the recording, arrivals from 0; `stop` is at most `count`.
        Raises ArrivalFileError if a block is damaged.
        """
        return self._between(start, stop, 0)

    def positions(self, start: int, stop: int) -> Ints:
        """Return for arrivals `start` to `stop` - 1 the position of their name in `names`.

        Arrivals count from 0; `stop` is at most `count`. Raises ArrivalFileError as `instants`.
        """
        return self._between(start, stop, 1)

    def before(self, instant_us: float) -> int:
        """Return how many arrivals have a time below `instant_us`, microseconds.

        Raises ArrivalFileError if a block is damaged.
        """
        at = int(np.searchsorted(self._lasts, instant_us))
        if at == len(self._blocks):
            return self.count
        inside = int(np.searchsorted(self._block(at)[0], instant_us))
        return self._blocks[at].start + inside

    def verify(self) -> None:
        """Read and check all blocks. Raises ArrivalFileError for the first that is damaged."""
        for at in range(len(self._blocks)):
            self._block(at)

    def _between(self, start: int, stop: int, column: int) -> Ints:
        parts = [np.empty(0, np.int64)]
        while start < stop:
            at = int(np.searchsorted(self._starts, start, side="right")) - 1
            block = self._blocks[at]
            part = self._block(at)[column][start - block.start : stop - block.start]
            parts.append(part)
            start += len(part)
        return np.concatenate(parts)

    def _block(self, at: int) -> tuple[Ints, Ints]:
        if at in self._kept:
            self._kept.move_to_end(at)
            return self._kept[at]
        block = self._blocks[at]
        try:
            packed = os.pread(self._descriptor, block.size, block.offset)
            if zlib.crc32(packed) != block.crc:
                raise ValueError("changed")
            found = _unpacked_block(packed, block, len(self.names))
        except (OSError, ValueError):
            raise ArrivalFileError(f"{self.path} {_damage_text(f'block {at + 1}')}") from None
        self._kept[at] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


class ArrivalWriter:
    """Writes a file of arrivals: header, blocks as arrivals come, and the index at the end."""

    def __init__(self, file: BinaryIO, names: Sequence[str], span_us: int) -> None:
        """Write the header to `file`, which is open for writing.

        `names`: names of requests, to which arrivals refer. `span_us`: end of the recorded time,
        microseconds; all times are less. Raises OSError, and ValueError unless there are 1 to
        `MOST_NAMES` names.
        """
        if not 0 < len(names) <= MOST_NAMES:
            raise ValueError(f"expected 1 to {MOST_NAMES} names, got {len(names)}")
        self._file = file
        self._names = list(names)
        self._span_us = max(1, span_us)
        self._shares = np.zeros(len(names), np.int64)
        self._bins = np.zeros(min(_BINS, -(-self._span_us // 1_000_000)), np.int64)
        self._blocks: list[ArrivalBlock] = []
        self._compressor = zstandard.ZstdCompressor(level=6)
        self._waiting: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))
        head = b"%s%d\n" % (_HEAD, _VERSION)
        self._offset = file.write(head)

    def add(self, instants_us: Ints, positions: Ints) -> None:
        """Add arrivals, none earlier than arrivals before, and write blocks that are full.

        `instants_us`: times in microseconds, ascending; `positions`: position in `names` for each.
        Raises OSError.
        """
        self._waiting = (
            np.concatenate((self._waiting[0], instants_us)),
            np.concatenate((self._waiting[1], positions)),
        )
        while len(self._waiting[0]) >= BLOCK:
            self._flush()

    def close(self) -> None:
        """Write the rest and the index; the file stays open.

        Raises OSError; ValueError if there was no arrival.
        """
        if len(self._waiting[0]):
            self._flush()
        if not self._blocks:
            raise ValueError("no arrival")
        document = {
            "names": self._names,
            "shares": self._shares.tolist(),
            "span_us": self._span_us,
            "bins": self._bins.tolist(),
            "blocks": [
                (one.size, one.crc, one.count, one.first_us, one.last_us) for one in self._blocks
            ],
        }
        index = self._compressor.compress(msgpack.packb(document))
        self._file.write(index)
        self._file.write(_TRAILER.pack(self._offset, len(index), zlib.crc32(index)) + _TAIL)

    def _flush(self) -> None:
        instants, positions = (one[:BLOCK] for one in self._waiting)
        self._waiting = (self._waiting[0][BLOCK:], self._waiting[1][BLOCK:])
        packed = self._compressor.compress(_packed_block(instants, positions))
        start = self._blocks[-1].start + self._blocks[-1].count if self._blocks else 0
        self._blocks.append(
            ArrivalBlock(
                offset=self._offset,
                size=len(packed),
                crc=zlib.crc32(packed),
                start=start,
                count=len(instants),
                first_us=int(instants[0]),
                last_us=int(instants[-1]),
            )
        )
        self._shares += np.bincount(positions, minlength=len(self._shares))
        places = instants * len(self._bins) // self._span_us
        self._bins += np.bincount(places, minlength=len(self._bins))
        self._file.write(packed)
        self._offset += len(packed)


@dataclass(frozen=True, kw_only=True)
class _Index:
    names: tuple[str, ...]
    shares: tuple[int, ...]
    span_us: int
    bins: tuple[int, ...]
    blocks: tuple[ArrivalBlock, ...]


def _packed_block(instants: Ints, positions: Ints) -> bytes:
    gaps = np.diff(instants, prepend=instants[0])
    # equal weights of all bytes together compress better
    columns = (gaps.astype("<u8"), positions.astype("<u2"))
    return b"".join(
        column.view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()
        for column in columns
    )


def _unpacked_block(packed: bytes, block: ArrivalBlock, names: int) -> tuple[Ints, Ints]:
    """Return the times (microseconds) and the positions of names in a packed block.

    Raises ValueError if the content does not fit the index entry `block` or the count `names`.
    """
    content = decompress(packed, BLOCK * _WIDEST)
    if len(content) != block.count * _WIDEST:
        raise ValueError("of another size")
    table = np.frombuffer(content, np.uint8).reshape(_WIDEST, block.count)
    gaps = np.ascontiguousarray(table[:8].T).view("<u8").ravel()
    positions = np.ascontiguousarray(table[8:].T).view("<u2").ravel().astype(np.int64)
    instants = np.cumsum(gaps.astype(np.int64)) + block.first_us
    if instants[-1] != block.last_us or (np.diff(instants) < 0).any() or positions.max() >= names:
        raise ValueError("not of this file")
    return instants, positions


def _index(file: BinaryIO) -> _Index:
    """Read and check the index of an open file of arrivals.

    Raises OSError; ArrivalFileError, whose message lacks the path, if the file is damaged, of
    another kind or version.
    """
    head = file.read(64).partition(b"\n")[0]
    if not head.startswith(_HEAD):
        raise ArrivalFileError(
            "is not a file of arrivals: make one with `osbench-coord init --from-access-log`"
            if head
            else "is empty: make it again with `osbench-coord init --from-access-log`"
        )
    version = head.removeprefix(_HEAD)
    if version != b"%d" % _VERSION:
        said = version.decode("ascii", "replace")[:20]
        raise ArrivalFileError(
            f"has version {said} of files of arrivals, and this osbench reads {_VERSION}; make it "
            "again with `osbench-coord init --from-access-log`"
        )
    end = file.seek(0, os.SEEK_END) - _TRAILER.size - len(_TAIL)
    if end < 0:
        raise ArrivalFileError(_damage_text("the end is missing"))
    file.seek(end)
    trailer = file.read()
    if not trailer.endswith(_TAIL):
        raise ArrivalFileError(_damage_text("the end is missing"))
    offset, size, crc = _TRAILER.unpack(trailer[: _TRAILER.size])
    if offset + size != end or size > _LARGEST_INDEX:
        raise ArrivalFileError(_damage_text("the index"))
    file.seek(offset)
    packed = file.read(size)
    try:
        if zlib.crc32(packed) != crc:
            raise ValueError("changed")
        document = msgpack.unpackb(decompress(packed, _LARGEST_INDEX))
        return _read_index(document, len(head) + 1, offset)
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        raise ArrivalFileError(_damage_text("the index")) from None


def _read_index(document: dict[str, Any], offset: int, end: int) -> _Index:
    """Return the index from its decoded MessagePack document, after checks.

    Blocks lie from `offset` to `end` in the file, bytes. Raises ValueError, TypeError and KeyError
    if the document is malformed.
    """
    blocks = tuple(_blocks(document["blocks"], offset))
    names, shares = tuple(map(str, document["names"])), tuple(map(int, document["shares"]))
    span_us, bins = int(document["span_us"]), tuple(map(int, document["bins"]))
    if not (blocks and names and bins) or len(names) != len(shares):
        raise ValueError("parts are missing")
    ordered = all(one.last_us <= other.first_us for one, other in pairwise(blocks))
    if not ordered or blocks[-1].offset + blocks[-1].size != end or span_us <= blocks[-1].last_us:
        raise ValueError("blocks do not fit")
    return _Index(names=names, shares=shares, span_us=span_us, bins=bins, blocks=blocks)


def _blocks(listed: Sequence[Sequence[int]], offset: int) -> Iterator[ArrivalBlock]:
    start = 0
    for size, crc, count, first_us, last_us in listed:
        if not 0 < count <= BLOCK or size <= 0 or not 0 <= first_us <= last_us:
            raise ValueError("no block")
        yield ArrivalBlock(
            offset=offset,
            size=size,
            crc=crc,
            start=start,
            count=count,
            first_us=first_us,
            last_us=last_us,
        )
        offset += size
        start += count


def _damage_text(what: str) -> str:
    return f"is damaged ({what}): copy it again, or make it again with `osbench-coord init`"
