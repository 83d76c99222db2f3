"""Finds the files of a run that a command names: its id, a folder, a packed run, or an archive."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, BinaryIO

import zstandard

from osbench.common.errors import StorageError, UsageError
from osbench.common.files.packed_files import packed_files
from osbench.common.files.regular_files import open_regular
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.run_views.damaged_runs import warn_of
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_directory import RunDirectory, run_id_of
from osbench.coordinator.results.storage.run_log import LOG
from osbench.coordinator.results.storage.run_store import open_store
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.run_evidence import SEALED
from osbench.edges.certificate.sealed_statement import RunEvidence

#: Ends the name of a packed run, and bytes of its log that are unpacked at most.
PACKED = ".tar.zst"
_LOG_BYTES = 4 << 20
#: Files that are to become so many times as large are none; and bytes that are allowed anyway.
_RATIO, _ALLOWED = 1000, 64 << 20
_CHUNK = 1 << 20


def named_run(
    settings: CommandSettings, name: str, archive: str | None, data_dir: Path
) -> RunDirectory:
    """Return the files of a run: of a folder, of the data directory, or of an archive.

    `data_dir`: the folder to which runs of the archive are fetched. Raises UsageError if the run is
    not there, ArchiveError, StorageError.
    """
    path = Path(name)
    if archive is not None:
        store = open_store(archive, str(data_dir), warn_of)
        runs = {one.run_id: one for one in store.runs()}
        if not runs:
            raise UsageError(store.emptiness())
        return runs[run_id_of(name, sorted(runs), f"the archive {store.place}")].fetch()
    if path.is_dir() or os.sep in name:
        if not (path / "run.json").is_file():
            raise UsageError(
                f"{name} is not the folder of a run, which has a run.json; `osbench-coord runs"
                " list` shows runs"
            )
        # a relative folder such as "." has no name
        return RunDirectory(path.resolve())
    return RunDirectory.find(str(settings.data_dir), name)


def require_separate(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """Raise UsageError if a file to be written is another one, or a file that is read.

    None is left out. A key must not be overwritten by a page.
    """
    known = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in known:
            raise UsageError(f"{path} would be overwritten; give each output another name")
        known.add(path.resolve())


def unpacked_run(path: Path, evidence: RunEvidence, folder: Path) -> RunDirectory:
    """Unpack a packed run of an archive into the existing `folder`; returns its directory.

    Only sealed files are accepted, in their sizes, and the log. Raises UsageError if the file
    cannot be read, CertificateRefused if it holds other files or is damaged, StorageError if there
    is not enough space.
    """
    target = folder / evidence.run_id
    try:
        source = open_regular(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason_of(error)}; give the packed run") from None
    with source:
        packed = os.fstat(source.fileno()).st_size
        if sum(one.bytes for one in evidence.files.values()) > _ALLOWED + _RATIO * packed:
            raise CertificateRefused(f"{path} would become more than a thousand times as large")
        try:
            target.mkdir(mode=0o700)
            _unpack_all(source, evidence, target)
        except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
            raise CertificateRefused(
                f"{path} is not the packed run of the certificate: {error}"
            ) from None
        except OSError as error:
            raise StorageError(
                f"cannot unpack {path} in {folder}: {reason_of(error)}; free space there"
            ) from None
    return RunDirectory(target)


def _unpack_all(source: BinaryIO, evidence: RunEvidence, target: Path) -> None:
    sizes = [_LOG_BYTES, *(one.bytes for one in evidence.files.values())]
    with packed_files(source, sizes, "the sealed files") as tar:
        for member in tar:
            run, _, name = member.name.partition("/")
            shown = plain(member.name, 80)
            if run != evidence.run_id:
                raise ValueError(f"it has {shown}, and the run is {evidence.run_id}")
            sealed = evidence.files.get(name) if name in SEALED else None
            if (sealed is None and name != LOG) or (target / name).exists():
                raise ValueError(f"{shown} was added")
            data = tar.extractfile(member) if member.isreg() else None
            if data is None or member.size > (_LOG_BYTES if sealed is None else sealed.bytes):
                raise ValueError(f"{shown} was changed: it has another size, or is a link")
            _write(data, target / name)


def _write(data: IO[bytes], path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("xb") as file:
        while chunk := data.read(_CHUNK):
            file.write(chunk)
