"""A file of spans in the order of their arrival; it is read back trace by trace.

Spans are spread over parts by the first byte of their trace id, so that the spans of a trace lie in
one part, and a reader has one part in memory at a time. A record is a head, which has the number of
its part and its length, and compressed spans. A last record that a crash has cut off is ignored.
"""

from __future__ import annotations

import errno
import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgpack
import zstandard

from osbench.common.files.decompression import decompress
from osbench.common.files.regular_files import open_regular
from osbench.edges.traces.model.spans import Span, Trace, better

#: Parts of a spool, one for each first byte.
PARTS = 256
#: Bytes of a part that are written together.
_TOGETHER = 1 << 16
#: Most bytes of a record, decompressed.
_BYTES = 64 << 20
#: Most spans that are read of one trace.
SPANS = 10_000
_HEAD = struct.Struct("<BI")


class SpanSpool:
    """Appends spans of any traces to a file, compressed.

    It writes beyond its limit, too: callers stop adding once `is_full` is true.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        """Open or create the file, and cut off an incomplete last record.

        `is_full` is true from `limit_bytes` of file size. Raises OSError.
        """
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._limit = limit_bytes
        # a coordinator that was killed may have left half of a record
        self._size = _whole(path)[1]
        os.ftruncate(self._file, self._size)
        self._compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        self._packer = msgpack.Packer(autoreset=True)
        self._waiting = [bytearray() for _ in range(PARTS)]
        self._spans = [0] * PARTS
        #: Spans that were added and could not be written.
        self.lost = 0

    @property
    def is_full(self) -> bool:
        """Return whether the file has reached its limit; spans that wait in memory do not count."""
        return self._size >= self._limit

    def add(self, trace_id: bytes, span: Span) -> None:
        """Add a span to its part of the spool, in memory; `trace_id` has 16 bytes.

        A part is written to the file at 64 KiB, or by `flush`. Raises OSError if the file cannot be
        written: then the waiting spans of the part are discarded, and counted in `lost`.
        """
        number = trace_id[0]
        part = self._waiting[number]
        part += self._packer.pack((trace_id, span))
        self._spans[number] += 1
        if len(part) >= _TOGETHER:
            self._write(number)

    def flush(self) -> None:
        """Write all waiting spans to the file, without a sync.

        Raises the last OSError, after trying all parts: spans of failed parts are discarded, and
        counted in `lost`.
        """
        failed: OSError | None = None
        for number, part in enumerate(self._waiting):
            if part:
                try:
                    self._write(number)
                except OSError as error:
                    failed = error
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Close the file. Waiting spans are discarded: call `flush` before."""
        os.close(self._file)

    def _write(self, number: int) -> None:
        packed, spans = bytes(self._waiting[number]), self._spans[number]
        self._waiting[number].clear()
        self._spans[number] = 0
        record = self._compressor.compress(packed)
        data = _HEAD.pack(number, len(record)) + record
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            self.lost += spans
            # records after half a record would not be found
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)


class SpooledTraces:
    """Reads the traces of a spool, which has to be complete: spans added later are not seen.

    Iterating yields all traces. One part is in memory at a time.
    """

    def __init__(self, path: Path) -> None:
        """Find the records of the file; a missing file has no traces.

        An incomplete last record counts in `damaged`. Raises OSError.
        """
        self._path = path
        self._records: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._part = -1
        self._traces: dict[str, Trace] = {}
        #: Spans left out above `SPANS`, and records that could not be read to their end.
        self.cut = self.damaged = 0
        #: Parts that were counted in these two.
        self._counted: set[int] = set()
        if path.exists():
            records, end = _whole(path)
            self.damaged += path.stat().st_size > end
            for number, at, length in records:
                self._records[number].append((at, length))

    def get(self, trace_id: str) -> Trace | None:
        """Return the trace with this id, 32 hexadecimal digits; None if there are no spans of it.

        Quick if called in order of ids: another first byte loads another part. Raises OSError.
        """
        number = int(trace_id[:2], 16)
        if number != self._part:
            self._load(number)
        return self._traces.get(trace_id)

    def __iter__(self) -> Iterator[Trace]:
        for number in range(PARTS):
            self._load(number)
            yield from self._traces.values()

    def _load(self, number: int) -> None:
        found: dict[bytes, dict[str, Span]] = {}
        seen: dict[bytes, int] = {}
        fresh = number not in self._counted
        self._counted.add(number)
        for trace_id, span in self._spans(number, fresh):
            known = found.setdefault(trace_id, {})
            seen[trace_id] = seen.get(trace_id, 0) + 1
            other = known.get(span.span_id)
            if other is not None:
                known[span.span_id] = better(span, other)
            elif len(known) < SPANS:
                known[span.span_id] = span
            else:
                seen[trace_id] -= 1
                self.cut += fresh
        self._part = number
        self._traces = {
            trace_id.hex(): Trace(
                trace_id=trace_id.hex(),
                spans=tuple(sorted(known.values(), key=lambda one: (one.start_ns, one.span_id))),
                duplicates=seen[trace_id] - len(known),
            )
            for trace_id, known in found.items()
        }

    def _spans(self, number: int, fresh: bool) -> Iterator[tuple[bytes, Span]]:
        """Yield trace id and span of a part's entries; a record is left at its first bad entry.

        `fresh`: count records that could not be read, or not to their end, in `damaged`.
        """
        if not self._records.get(number):
            return
        with open_regular(self._path) as file:
            for at, length in self._records[number]:
                file.seek(at)
                end = 0
                try:
                    packed = decompress(file.read(length), _BYTES)
                    unpacker = msgpack.Unpacker(max_buffer_size=_BYTES)
                    unpacker.feed(packed)
                    for trace_id, form in unpacker:
                        if type(trace_id) is not bytes:
                            raise TypeError("a trace id is not bytes")
                        yield trace_id, Span(*form)
                        end = unpacker.tell()
                    # the unpacker ends without an error at half an entry
                    whole = end == len(packed)
                except (ValueError, TypeError, msgpack.UnpackException):
                    whole = False
                self.damaged += fresh and not whole


def _whole(path: Path) -> tuple[list[tuple[int, int, int]], int]:
    """Return (part, offset, length) of the data of all complete records, and their end.

    Offsets and lengths in bytes. Raises OSError.
    """
    found, end = [], 0
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        while end + _HEAD.size <= size:
            file.seek(end)
            number, length = _HEAD.unpack(file.read(_HEAD.size))
            at = end + _HEAD.size
            if at + length > size:
                break
            found.append((number, at, length))
            end = at + length
    return found, end
