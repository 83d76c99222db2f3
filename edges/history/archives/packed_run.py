"""Packs a run into one file, a compressed tar archive, and unpacks it.

The same run gives the same bytes. Neither side holds more than a piece of it in memory. The
contents are known from the index record before it is unpacked.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import zstandard

from osbench.common.errors import RefusedRun
from osbench.common.files.packed_files import packed_files
from osbench.common.files.regular_files import open_regular
from osbench.coordinator.results.storage.digests import COVERED, DIGESTS, Entry
from osbench.coordinator.results.storage.run_log import LOG

#: Files of a run that are archived. The others belong to its host: locks, plans, secrets.
FILES = frozenset((*COVERED, DIGESTS, LOG))
#: Ends of names of packed runs.
SUFFIX = ".tar.zst"
_LEVEL = 3
_CHUNK = 1 << 20
#: A run that is to become so many times as large is none: its blocks are compressed already.
_RATIO = 1000
_ALLOWED = 64 << 20


class _Sums:
    """A reader of a file that counts the bytes it has read, and computes their SHA-256."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; b"" at the end."""
        data = self._file.read(size)
        self._digest.update(data)
        self._bytes += len(data)
        return data

    @property
    def entry(self) -> Entry:
        """Return number ("bytes") and SHA-256 ("sha256") of the bytes read so far."""
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}


def pack(folder: Path, files: Mapping[str, Entry], target: BinaryIO) -> None:
    """Write the `files` of the run directory `folder` to `target` as a compressed tar archive.

    `files`: size and SHA-256 by name. Raises RefusedRun if a file's content does not fit them,
    OSError if a file cannot be read or written.
    """
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with (
        compressor.stream_writer(target, closefd=False) as packed,
        tarfile.open(fileobj=cast(Any, packed), mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, entry in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder.name}/{name}")
            member.size, member.mode = entry["bytes"], 0o600
            with open_regular(folder / name) as file:
                sums = _Sums(file)
                try:
                    tar.addfile(member, cast(Any, sums))
                except OSError as error:
                    # tarfile's own, of a file that has become shorter
                    if error.errno is not None:
                        raise
                grown = sums.entry == entry and file.read(1)
            if sums.entry != entry or grown:
                raise RefusedRun(
                    f"run {folder.name}: {name} changed while it was packed; push it again"
                )


def unpack(source: BinaryIO, folder: Path, files: Mapping[str, Entry]) -> None:
    """Unpack the packed run `source` into the new folder `folder`, whose name is the run's id.

    Only `files` (size and SHA-256 by name) are accepted, and checked. Raises ValueError with the
    reason if the packed run has other or fewer files or is damaged, OSError; part may be left then.
    """
    sizes = [entry["bytes"] for entry in files.values()]
    folder.mkdir(mode=0o700)
    missing = dict(files)
    try:
        with packed_files(source, sizes, "the files of its index record") as tar:
            for member in tar:
                name = member.name.removeprefix(f"{folder.name}/")
                entry = missing.pop(name, None)
                data = tar.extractfile(member) if member.isreg() else None
                if entry is None or data is None or name == member.name:
                    raise ValueError("it has other files than its index record names")
                _write(data, folder / name, entry)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise ValueError(f"expected a complete tar file in zstandard: {error}") from None
    if missing:
        raise ValueError(f"expected {min(missing)} in it, found none")


def _write(data: IO[bytes], path: Path, entry: Entry) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    sums = _Sums(data)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := sums.read(_CHUNK):
            file.write(chunk)
            if file.tell() > entry["bytes"]:
                break
    if sums.entry != entry:
        raise ValueError(f"{path.name} was changed; expected the SHA-256 of its index record")


def is_bomb(files: Mapping[str, Entry], packed_bytes: int) -> bool:
    """Return whether a packed run of this size is implausible for `files`: a decompression bomb.

    That is, they are larger than 64 MiB plus a thousand times `packed_bytes`.
    """
    return total_bytes(files) > _ALLOWED + _RATIO * packed_bytes


def total_bytes(files: Mapping[str, Entry]) -> int:
    """Return the sum of the files' unpacked sizes, bytes; `files`: size and SHA-256 by name."""
    return sum(int(entry["bytes"]) for entry in files.values())
