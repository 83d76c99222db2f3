"""The traces in a run directory: the kept ones with all spans, and the digest of all.

traces/kept             traces, each compressed separately
traces/features         one row per collected trace
traces/collection.json  counts, clocks and ranking
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgpack
import zstandard

from osbench.common.errors import OsbenchError
from osbench.common.files.decompression import decompress
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import open_regular, read_regular
from osbench.common.protocol.unpacking import unpack
from osbench.coordinator.results.storage.digests import KeptFiles
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.model.spans import Span, SpanOrigin, Trace

#: Version of these files; increased when older readers would misread them. The first has no
#: origins of spans.
FORMAT = 2
_READABLE = (1, 2)
#: Most bytes of a record, decompressed.
BYTES = 512 << 20

_HEAD = struct.Struct("<I")
#: Bytes at the beginning of a record that hold its first id; ids of 128 bits take 36.
_ID_BYTES = 512
#: Traces per record of a spool.
_TOGETHER = 100


def _packed_trace(trace: Trace) -> list[Any]:
    return [trace.trace_id, trace.duplicates, trace.spans, trace.origins]


def _unpacked_trace(form: list[Any]) -> Trace:
    trace_id, duplicates, spans, *rest = form
    origins = rest[0] if rest else {}
    return Trace(
        trace_id=trace_id,
        duplicates=duplicates,
        spans=tuple(Span(*span) for span in spans),
        origins={name: SpanOrigin(*written) for name, written in origins.items()},
    )


class Spool:
    """A temporary file of traces, written first, then read in the same order.

    `close` removes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("w+b")
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._waiting: list[Any] = []

    def add(self, trace: Trace) -> None:
        """Append a trace; writes 100 at once, the rest before reading. Raises OSError."""
        self._waiting.append(_packed_trace(trace))
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def __iter__(self) -> Iterator[Trace]:
        self._flush()
        self._file.seek(0)
        for record in _records(self._file):
            yield from _traces(record)

    def close(self) -> None:
        """Close and remove the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._waiting:
            _write(self._file, self._compressor, self._waiting)
            self._waiting = []


class Archive:
    """The folder `traces` of a run directory, for writing and for reading.

    It has kept traces with all spans, a feature table with a row per collected trace, and counts.
    """

    def __init__(self, run: Path, files: KeptFiles | None = None) -> None:
        """Read or write the traces of the run directory `run`.

        `files` verifies files against the run's digests; None makes one.
        """
        self._folder = run / "traces"
        self._files = files or KeptFiles(run)
        self._kept: BinaryIO | None = None
        self._compressor = zstandard.ZstdCompressor(level=3)
        #: Bytes of the traces kept so far.
        self.size = 0

    @property
    def exists(self) -> bool:
        """Return whether the run has a completed collection of traces.

        Raises DamagedRun if the file of counts differs from the run's digest, or is missing
        although the run has a digest of it.
        """
        self._files.check("traces/collection.json")
        return (self._folder / "collection.json").exists()

    def spool(self) -> Spool:
        """Create the folder if it is missing; return a new, empty spool in it. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return Spool(self._folder / "spool")

    def keep(self, trace: Trace) -> None:
        """Append a trace to the file of kept traces; the first one replaces an old file.

        Raises OSError. `size` grows by the bytes written.
        """
        if self._kept is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._kept = (self._folder / "kept").open("wb")
        self.size += _write(self._kept, self._compressor, [_packed_trace(trace)])

    def close(self, features: Features, collection: Mapping[str, Any]) -> None:
        """Write `features`, then `collection` (counts, clocks, ranking), which marks the end.

        Closes the file of kept traces. Raises OSError.
        """
        self.release()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        table = self._compressor.compress(msgpack.packb(features.to_dict()))
        (self._folder / "features").write_bytes(table)
        draft = self._folder / "collection.draft"
        draft.write_text(json.dumps({"format": FORMAT, **collection}, indent=1), "utf-8")
        draft.replace(self._folder / "collection.json")

    def release(self) -> None:
        """Close the file of kept traces if it is open; a later `keep` would replace the file."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def collection(self) -> dict[str, Any]:
        """Return counts, clocks and ranking as `close` wrote them, with the key `format`.

        Raises OsbenchError if the file cannot be read or has another format, DamagedRun if it
        differs from the run's digest.
        """
        path = self._folder / "collection.json"
        self._files.check("traces/collection.json")
        try:
            found: dict[str, Any] = read_json(read_regular(path, BYTES))
        except (OSError, ValueError) as error:
            raise OsbenchError(f"cannot read {path}: {error}; restore it from a copy") from None
        if not isinstance(found, dict):
            raise OsbenchError(
                f"{path}: expected a JSON object of a collection of traces; restore it from a copy"
            )
        if found.get("format") not in _READABLE:
            raise OsbenchError(
                f"{path} has format {found.get('format')}, and this osbench reads "
                f"{' and '.join(map(str, _READABLE))}; read it with the osbench that wrote it"
            )
        return found

    def features(self) -> Features:
        """Return the feature table of all collected traces.

        Raises OsbenchError if it cannot be read, DamagedRun if it differs from the run's digest.
        """
        path = self._folder / "features"
        self._files.check("traces/features")
        try:
            return Features.from_dict(unpack(decompress(read_regular(path, BYTES), BYTES)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise OsbenchError(f"cannot read {path}: {error}; restore it from a copy") from None

    def traces(self) -> Iterator[Trace]:
        """Yield the kept traces one by one, up to the first record that cannot be unpacked.

        Yields none if the file is missing. Raises DamagedRun if it differs from the run's digest,
        OSError.
        """
        path = self._folder / "kept"
        self._files.check("traces/kept")
        if path.exists():
            with open_regular(path) as file:
                for record in _records(file):
                    yield from _traces(record)

    def some(self, wanted: Collection[str]) -> Iterator[Trace]:
        """Yield the kept traces whose ids are in `wanted`, in the order of the file.

        Ends at the first record that cannot be decompressed; other traces are not unpacked. Raises
        DamagedRun if the file differs from the run's digest, OSError.
        """
        path = self._folder / "kept"
        self._files.check("traces/kept")
        ids = frozenset(wanted)
        if path.exists() and ids:
            with open_regular(path) as file:
                for packed in _decompressed_frames(file):
                    if _first_id(packed) in ids:
                        with suppress(ValueError):
                            yield from _traces(unpack(packed))


def _write(file: BinaryIO, compressor: zstandard.ZstdCompressor, forms: Iterable[Any]) -> int:
    record = compressor.compress(msgpack.packb(forms))
    file.write(_HEAD.pack(len(record)))
    file.write(record)
    return _HEAD.size + len(record)


def _records(file: BinaryIO) -> Iterator[Any]:
    for packed in _decompressed_frames(file):
        try:
            yield unpack(packed)
        except ValueError:
            return


def _traces(record: Any) -> Iterator[Trace]:
    """Yield the traces of a record, up to the first entry that is not a trace."""
    try:
        for form in record:
            yield _unpacked_trace(form)
    except (TypeError, ValueError, AttributeError):
        return


def _decompressed_frames(file: BinaryIO) -> Iterator[bytes]:
    left = os.fstat(file.fileno()).st_size
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        size = _HEAD.unpack(head)[0]
        left -= _HEAD.size + size
        if left < 0:
            return
        try:
            yield decompress(file.read(size), BYTES)
        except ValueError:
            return


def _first_id(packed: bytes) -> str:
    """Return the id of the first trace of a record, without unpacking spans; "" if none."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(packed[:_ID_BYTES])
    try:
        unpacker.read_array_header()
        unpacker.read_array_header()
        return str(unpacker.unpack())
    except (ValueError, msgpack.OutOfData):
        return ""
