"""The index record of an archived run: its files with their digests, and its report.

Lists, trends and histories are made of records; the run itself is fetched only to be looked into.
The name of a record ends in the digest of the run's files: a record never changes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import zstandard

from osbench.common.files.decompression import decompress
from osbench.common.files.foreign_json import read_json
from osbench.coordinator.results.storage.digests import Entry
from osbench.coordinator.results.storage.run_documents import SUMMARY, is_summary
from osbench.coordinator.results.storage.run_listing import (
    BROKEN_OFF,
    FINISHED,
    RESUMABLE,
    figures_of,
    row_of,
)
from osbench.edges.history.archives.packed_run import FILES, SUFFIX, total_bytes

#: Folders of an archive.
INDEX, RUNS = "index", "runs"
#: Version of the record; that of another one is left out.
FORMAT = 1
#: Largest record that is read, packed and unpacked, bytes.
MOST_PACKED, MOST_BYTES = 32 << 20, 160 << 20
_MANIFEST = "run.json"
_SUFFIX = ".json.zst"
_DIGITS = 16
#: A run's id, and the digest of its files.
_NAME = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]{{0,199}})\.([0-9a-f]{{{_DIGITS}}})")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ArchiveRecord:
    """The index record of an archived run: its files, state, request and report."""

    run_id: str
    #: By name: bytes and SHA-256.
    files: Mapping[str, Entry]
    #: `FINISHED`, `BROKEN_OFF` or `RESUMABLE`: the name that it had on its host.
    state: str
    #: Exit code, and why there is no report, of a run that was broken off.
    exit_code: int | None
    why: str | None
    #: Bytes of the packed run.
    packed_bytes: int
    #: run.json and summary.json as they are.
    manifest_text: str
    summary_text: str | None

    @cached_property
    def stem(self) -> str:
        """Return RUN_ID.DIGEST, the common part of the names of the run's two files in the archive.

        DIGEST is the result of `content_of`. Cached.
        """
        return f"{self.run_id}.{content_of(self.run_id, self.files)}"

    @property
    def name(self) -> str:
        """Return the name of the record's file in the archive, with its folder."""
        return f"{INDEX}/{self.stem}{_SUFFIX}"

    @property
    def packed(self) -> str:
        """Return the name of the packed run in the archive, with its folder."""
        return f"{RUNS}/{self.stem}{SUFFIX}"

    @property
    def finished(self) -> bool:
        """Return whether the run has its final report, so that its files will not change."""
        return self.state == FINISHED and self.summary_text is not None

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Return run.json, the request for the run, as JSON values."""
        found: dict[str, Any] = read_json(self.manifest_text)
        return found

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """Return summary.json, the report, as JSON values; None if the run has no report."""
        return None if self.summary_text is None else read_json(self.summary_text)

    @property
    def has_traces(self) -> bool:
        """Return whether the run's files in the archive include collected traces."""
        return "traces/collection.json" in self.files

    def row(self) -> dict[str, Any]:
        """Return the run's row for lists of runs, as a new dict.

        A run that has not finished counts as broken off. `size_bytes`: of its files, unpacked.
        """
        return dict(self._row)

    @cached_property
    def _row(self) -> dict[str, Any]:
        figures = figures_of(self.summary) if self.summary else None
        # it is not resumed from here
        state = FINISHED if self.finished else BROKEN_OFF
        ended = {} if self.finished else {"exit": self.exit_code, "why": self.why}
        row = row_of(self.run_id, self.manifest, figures, state, ended)
        return {**row, "size_bytes": total_bytes(self.files)}

    def encoded(self) -> bytes:
        """Return the content of the record's file in the archive: JSON packed with Zstandard."""
        document = {
            "format": FORMAT,
            "run": self.run_id,
            "state": self.state,
            "exit": self.exit_code,
            "why": self.why,
            "packed_bytes": self.packed_bytes,
            "files": self.files,
            _MANIFEST: self.manifest_text,
            SUMMARY: self.summary_text,
        }
        text = json.dumps(document, sort_keys=True).encode()
        return zstandard.ZstdCompressor(level=6, write_checksum=True).compress(text)


def content_of(run_id: str, files: Mapping[str, Entry]) -> str:
    """Return a digest of a run's id and its files' names, sizes and SHA-256, as 16 hex digits.

    `files`: size and SHA-256 by name.
    """
    listed = [run_id, *([name, one["bytes"], one["sha256"]] for name, one in sorted(files.items()))]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:_DIGITS]


def run_of(name: str) -> str:
    """Return the run's id from a record's file name without folder; "" for other names."""
    found = _NAME.fullmatch(name.removesuffix(_SUFFIX)) if name.endswith(_SUFFIX) else None
    return "" if found is None else found[1]


def parse_record(name: str, content: bytes) -> ArchiveRecord:
    """Return the record in the content of a record's file; `name`: of the file, without folder.

    Raises ValueError if it is not a record, has another format, or if name, digests and content do
    not fit each other.
    """
    try:
        document = read_json(decompress(content, MOST_BYTES))
        if document["format"] != FORMAT:
            raise ValueError(
                f"its format is {document['format']}, expected {FORMAT}: install the osbench that "
                "wrote it"
            )
        record = _record(document)
        fits = record.name == f"{INDEX}/{name}" and _fits(record)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"expected an index record: {error}") from None
    if not fits:
        raise ValueError("it is cut or changed")
    return record


def _record(document: Mapping[str, Any]) -> ArchiveRecord:
    summary, code, why = document[SUMMARY], document["exit"], document["why"]
    return ArchiveRecord(
        run_id=document["run"],
        files={str(name): _entry(one) for name, one in document["files"].items()},
        state=str(document["state"]),
        exit_code=None if code is None else int(code),
        why=None if why is None else str(why),
        packed_bytes=int(document["packed_bytes"]),
        manifest_text=str(document[_MANIFEST]),
        summary_text=None if summary is None else str(summary),
    )


def _entry(one: Mapping[str, Any]) -> Entry:
    size, sha256 = one["bytes"], one["sha256"]
    if not isinstance(size, int) or size < 0 or not _SHA256.fullmatch(sha256):
        raise ValueError("expected an index record: a file has no size or SHA-256")
    return {"bytes": size, "sha256": sha256}


def _fits(record: ArchiveRecord) -> bool:
    """Return whether id, file names, state, request and summary are valid, and fit the digests."""
    summary = record.summary
    return (
        _NAME.fullmatch(record.stem) is not None
        and record.files.keys() <= FILES
        and record.state in (FINISHED, BROKEN_OFF, RESUMABLE)
        and _is_file(record, _MANIFEST, record.manifest_text)
        and isinstance(record.manifest, dict)
        and (SUMMARY in record.files) == (summary is not None)
        and (summary is None or _is_file(record, SUMMARY, str(record.summary_text)))
        and (summary is None or (is_summary(summary) and bool(record.row())))
    )


def _is_file(record: ArchiveRecord, name: str, text: str) -> bool:
    found = record.files.get(name, {}).get("sha256")
    return found == hashlib.sha256(text.encode()).hexdigest()
