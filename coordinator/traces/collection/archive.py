"""The traces of a run in its directory: those that are kept whole, and what all came to.

traces/kept             traces, each compressed by itself
traces/features         a row for each trace that was collected
traces/collection.json  counts, clocks and ranking
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgpack
import zstandard

from osbench.common.errors import OsbenchError
from osbench.coordinator.traces.analysis.features import Features
from osbench.coordinator.traces.model.spans import Span, Trace

#: Version of these files; grows when a reader of the older ones would be misled.
FORMAT = 1

_HEAD = struct.Struct("<I")
#: Traces of one record of a spool.
_TOGETHER = 100


def _packed(trace: Trace) -> list[Any]:
    return [trace.trace_id, trace.duplicates, trace.spans]


def _unpacked(form: list[Any]) -> Trace:
    trace_id, duplicates, spans = form
    return Trace(
        trace_id=trace_id, duplicates=duplicates, spans=tuple(Span(*span) for span in spans)
    )


class Spool:
    """Traces on their way: written once, read in the same order, then gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("w+b")
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._waiting: list[Any] = []

    def add(self, trace: Trace) -> None:
        """Append a trace."""
        self._waiting.append(_packed(trace))
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def __iter__(self) -> Iterator[Trace]:
        self._flush()
        self._file.seek(0)
        for record in _records(self._file):
            for form in record:
                yield _unpacked(form)

    def close(self) -> None:
        """Remove it."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._waiting:
            _write(self._file, self._compressor, self._waiting)
            self._waiting = []


class Archive:
    """The folder of a run's traces."""

    def __init__(self, run: Path) -> None:
        self._folder = run / "traces"
        self._kept: BinaryIO | None = None
        self._compressor = zstandard.ZstdCompressor(level=3)
        #: Bytes of the traces kept so far.
        self.size = 0

    @property
    def exists(self) -> bool:
        """Whether traces were collected."""
        return (self._folder / "collection.json").exists()

    def spool(self) -> Spool:
        """A spool in this folder, which is made."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return Spool(self._folder / "spool")

    def keep(self, trace: Trace) -> None:
        """Keep a trace whole."""
        if self._kept is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._kept = (self._folder / "kept").open("wb")
        self.size += _write(self._kept, self._compressor, [_packed(trace)])

    def close(self, features: Features, collection: Mapping[str, Any]) -> None:
        """Write what the traces came to; with that they are there."""
        self.release()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        table = self._compressor.compress(msgpack.packb(features.to_dict()))
        (self._folder / "features").write_bytes(table)
        draft = self._folder / "collection.draft"
        draft.write_text(json.dumps({"format": FORMAT, **collection}, indent=1), "utf-8")
        draft.replace(self._folder / "collection.json")

    def release(self) -> None:
        """Close the file of what is kept, if it is open."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def collection(self) -> dict[str, Any]:
        """Counts, clocks and ranking. Raises OsbenchError where they cannot be read."""
        path = self._folder / "collection.json"
        try:
            found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise OsbenchError(f"cannot read {path}: {error}") from None
        if found.get("format") != FORMAT:
            raise OsbenchError(
                f"{path} has format {found.get('format')}; this version of osbench reads {FORMAT}"
            )
        return found

    def features(self) -> Features:
        """The table of all traces. Raises OsbenchError where it cannot be read."""
        path = self._folder / "features"
        try:
            raw = zstandard.ZstdDecompressor().decompress(path.read_bytes())
            return Features.from_dict(msgpack.unpackb(raw))
        except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
            raise OsbenchError(f"cannot read {path}: {error}") from None

    def traces(self) -> Iterator[Trace]:
        """The traces that are kept, one after the other."""
        path = self._folder / "kept"
        if path.exists():
            with path.open("rb") as file:
                for record in _records(file):
                    yield from map(_unpacked, record)


def _write(file: BinaryIO, compressor: zstandard.ZstdCompressor, forms: Iterable[Any]) -> int:
    record = compressor.compress(msgpack.packb(forms))
    file.write(_HEAD.pack(len(record)))
    file.write(record)
    return _HEAD.size + len(record)


def _records(file: BinaryIO) -> Iterator[list[Any]]:
    decompressor = zstandard.ZstdDecompressor()
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        record = file.read(_HEAD.unpack(head)[0])
        try:
            yield msgpack.unpackb(decompressor.decompress(record))
        except (ValueError, zstandard.ZstdError):
            return
