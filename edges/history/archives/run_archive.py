"""An archive of runs: push them, read its index, fetch them; safe with writers at the same time.

A pushed run is two files, whose names no other run has: the packed run, and after it the record in
the index. Without its record a run is not in the archive, so that half a push counts as none.
Nothing is locked, shared or changed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osbench.common.errors import (
    ArchiveError,
    DamagedArchive,
    OsbenchError,
    RefusedRun,
    StorageError,
    UsageError,
)
from osbench.common.files.regular_files import make_private_directory, write_private
from osbench.coordinator.formatting import plain, size
from osbench.coordinator.results.storage.digests import Entry, damaged_run, entry_of
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import SUMMARY
from osbench.coordinator.results.storage.run_listing import DAMAGED, RUNNING, run_row
from osbench.edges.history.archives.archive_record import (
    INDEX,
    MOST_PACKED,
    ArchiveRecord,
    parse_record,
    run_of,
)
from osbench.edges.history.archives.archive_store import ArchiveStore, store_of
from osbench.edges.history.archives.packed_run import FILES, is_bomb, pack, total_bytes, unpack

#: In the data directory: records and runs that were read of archives, and drafts. Nothing depends
#: on it.
KEPT = "archives"
#: Records that are read at once.
_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class ArchivedRun:
    """A run in an archive, known by its index record; `fetch` downloads its files."""

    record: ArchiveRecord
    archive: RunArchive

    @property
    def run_id(self) -> str:
        """Return the run's id."""
        return self.record.run_id

    def row(self) -> dict[str, Any]:
        """Return the run's row for lists of runs, in the form of `run_listing.row_of`."""
        return self.record.row()

    def fetch(self) -> RunDirectory:
        """Return the run's directory in the cache of the data directory; download it if missing.

        Raises ArchiveError if the archive cannot be read or its copy is damaged, StorageError if
        the files cannot be written.
        """
        return self.archive.fetch(self.record)

    def fetch_or_warn(self) -> RunDirectory | None:
        """Return the run's directory as `fetch` does; None, after a warning, if that fails."""
        try:
            return self.fetch()
        except OsbenchError as error:
            self.archive.warn(str(error))
            return None


class RunArchive:
    """The archive at a path or URL: pushes, lists and fetches runs.

    Records and runs that were read are cached in the data directory.
    """

    def __init__(
        self,
        url: str,
        data_dir: str,
        warn: Callable[[str], None],
        *,
        store: ArchiveStore | None = None,
    ) -> None:
        """Open the archive at `url`, without reading it.

        `data_dir`: of the cache and of pulled runs. `warn` is called with messages on unreadable
        parts. `store`: instead of the store at `url`. Raises UsageError for an invalid URL,
        ArchiveError if the store cannot be opened.
        """
        self._store = store_of(url) if store is None else store
        self._warn = warn
        self._data_dir = data_dir
        place = hashlib.sha256(self.place.encode()).hexdigest()[:16]
        self._kept = Path(data_dir) / KEPT / place
        self._records: dict[str, ArchiveRecord] = {}
        self._warned: set[str] = set()

    @property
    def place(self) -> str:
        """Return the folder or URL of the archive, without secrets."""
        return self._store.place

    def emptiness(self) -> str:
        """Return a message why the archive has no run: its folder does not exist, or it is empty.

        To be called only if `runs` is empty. Raises ArchiveError if the store cannot
        be reached.
        """
        if self._store.is_missing():
            advice = "check the path; `runs push` creates it"
            return f"the archive {self.place} does not exist: {advice}"
        return f"there is no run in the archive {self.place}"

    # index

    def runs(self) -> list[ArchivedRun]:
        """Return all runs of the archive, sorted by id.

        Records that are not cached are read from the store. Of several records of a run a finished
        one counts, else the one with the longest journal. Warns of two finished ones, and of
        unreadable records, which are left out. Raises ArchiveError if the store cannot be read.
        """
        by_run: dict[str, ArchiveRecord] = {}
        for record in self._read(self._names()):
            other = by_run.get(record.run_id)
            if other is not None and record.finished and other.finished:
                self.warn(
                    f"the archive {self.place} has two runs {record.run_id}, of different content"
                )
            by_run[record.run_id] = record if other is None else max(record, other, key=_rank)
        return [ArchivedRun(record=by_run[run], archive=self) for run in sorted(by_run)]

    def ids(self) -> set[str]:
        """Return the ids of all runs, by the file names of records; the records are not read.

        Raises ArchiveError if the store cannot be listed.
        """
        return {run_of(name) for name in self._names()}

    def _names(self) -> list[str]:
        """Return the sorted file names of records, without folder.

        Records of more than `MOST_PACKED` bytes are left out with a warning. Raises ArchiveError.
        """
        found = []
        for name, number in sorted(self._store.listed(INDEX).items()):
            if not run_of(name):
                continue
            if number > MOST_PACKED:
                self._leave_out(name, f"it has {size(number)}")
            else:
                found.append(name)
        return found

    def _read(self, names: Sequence[str]) -> Iterator[ArchiveRecord]:
        for name in names:
            if name not in self._records:
                with contextlib.suppress(OSError, ValueError):
                    self._records[name] = parse_record(
                        name, (self._kept / INDEX / name).read_bytes()
                    )
        missing = [name for name in names if name not in self._records]
        for begin in range(0, len(missing), _AT_ONCE):
            part = [f"{INDEX}/{name}" for name in missing[begin : begin + _AT_ONCE]]
            for path, content in self._store.read(part).items():
                self._add(path.removeprefix(f"{INDEX}/"), content)
        # one may be gone since it was listed
        yield from (self._records[name] for name in names if name in self._records)

    def _add(self, name: str, content: bytes) -> None:
        try:
            self._records[name] = parse_record(name, content)
        except ValueError as error:
            self._leave_out(name, str(error))
            return
        # the next reader asks for what is new
        with contextlib.suppress(OSError):
            write_private(self._kept / INDEX / name, content)

    def _leave_out(self, name: str, why: str) -> None:
        self.warn(f"left out: the archive {self.place}: {INDEX}/{name}: {plain(why, 200)}")

    def warn(self, text: str) -> None:
        """Call the constructor's `warn` with a message, each text once."""
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)

    # push

    def push(self, directory: RunDirectory) -> bool:
        """Pack a run that has ended and store it; return False if the archive has it already.

        Raises UsageError for a run that is running or has not begun, DamagedRun if its files are
        damaged, StorageError if it cannot be read or packed, ArchiveError, and RefusedRun if its
        record would be invalid, the archive has another finished run of that id or a file changes
        meanwhile.
        """
        record = _index_record(directory)
        try:
            # an unreadable record must not get there
            parse_record(record.name.removeprefix(f"{INDEX}/"), record.encoded())
        except ValueError as error:
            raise RefusedRun(
                f"run {record.run_id} cannot be archived: its id or its record is not valid "
                f"({plain(str(error))}); give its folder the name that it had"
            ) from None
        mine = [name for name in self._names() if run_of(name) == record.run_id]
        for other in self._read(mine):
            if other.stem == record.stem:
                if self._store.size(other.packed) == other.packed_bytes:
                    return False
            elif other.finished:
                raise RefusedRun(
                    f"the archive {self.place} has a run {record.run_id} already, of different"
                    " content; it is left as it is: to replace it, remove it there"
                )
        try:
            self._push(directory, record)
        except OSError as error:
            raise StorageError(
                f"cannot pack run {record.run_id} in {self._drafts}: {reason_of(error)}; free "
                "space there"
            ) from None
        return True

    def _push(self, directory: RunDirectory, record: ArchiveRecord) -> None:
        with self._draft() as folder:
            draft = folder / "packed"
            with draft.open("xb") as file:
                pack(directory.path, record.files, file)
            number = draft.stat().st_size
            self._store.put(draft, record.packed)
            stored = self._store.size(record.packed)
            if stored != number:
                raise ArchiveError(
                    f"the archive {self.place}: {record.packed} has {stored or 0:,} of"
                    f" {number:,} bytes after it was written; push the run again"
                )
            whole = replace(record, packed_bytes=number)
            content = whole.encoded()
            draft.write_bytes(content)
            self._store.put(draft, whole.name)
            self._add(whole.name.removeprefix(f"{INDEX}/"), content)

    # fetch

    def pull(self, one: ArchivedRun) -> bool:
        """Fetch a run into the runs of the data directory; return False if the run's id is there.

        Raises ArchiveError if the archive's copy is missing or damaged, StorageError if there is
        not enough space or it cannot be written.
        """
        target = RunDirectory.of(self._data_dir, one.run_id).path
        return self._fetch(one.record, target)

    def fetch(self, record: ArchiveRecord) -> RunDirectory:
        """Return a run's directory in the cache of the data directory; download it if missing.

        Raises ArchiveError if the archive's copy is missing or damaged, StorageError if there is
        not enough space or it cannot be written.
        """
        # the digest is in the path: a run that is pushed again, finished, is another one
        target = self._kept / "runs" / record.stem / record.run_id
        self._fetch(record, target)
        return RunDirectory(target)

    def _fetch(self, record: ArchiveRecord, target: Path) -> bool:
        if os.path.lexists(target):
            return False
        number = self._store.size(record.packed)
        if number is None:
            raise self._damaged(record, "it is missing", there=False)
        if is_bomb(record.files, number):
            raise self._damaged(record, "it would become more than a thousand times as large")
        try:
            self._check_space(record, number)
            with self._draft() as folder:
                packed = folder / "packed"
                if not self._store.get(record.packed, packed):
                    raise self._damaged(record, "it is missing", there=False)
                try:
                    with packed.open("rb") as file:
                        unpack(file, folder / record.run_id, record.files)
                except ValueError as error:
                    raise self._damaged(record, str(error)) from None
                make_private_directory(target.parent)
                return _rename_folder(folder / record.run_id, target)
        except OSError as error:
            raise StorageError(
                f"cannot write run {record.run_id} to {target.parent}: {reason_of(error)}; free "
                "space there, or make it writable"
            ) from None

    def _check_space(self, record: ArchiveRecord, packed_bytes: int) -> None:
        make_private_directory(self._drafts)
        needed = packed_bytes + total_bytes(record.files)
        free = shutil.disk_usage(self._drafts).free
        if needed > free:
            raise StorageError(
                f"run {record.run_id} needs {size(needed)} in {self._drafts}, which has "
                f"{size(free)} left; free space there"
            )

    def _damaged(self, record: ArchiveRecord, why: str, *, there: bool = True) -> OsbenchError:
        return DamagedArchive(
            f"the archive {self.place}: {record.packed}: {plain(why, 200)};"
            f"{' remove it there, and' if there else ''} where the run is kept,"
            f" `osbench-coord runs push {record.run_id} URL` puts it back"
        )

    # drafts

    @property
    def _drafts(self) -> Path:
        return self._kept.parent / "drafts"

    @contextlib.contextmanager
    def _draft(self) -> Iterator[Path]:
        """Yield a new temporary folder in the data directory, which is removed after the block."""
        make_private_directory(self._drafts)
        with tempfile.TemporaryDirectory(dir=self._drafts) as folder:
            yield Path(folder)


def _index_record(directory: RunDirectory) -> ArchiveRecord:
    """Return the index record of a run; reads and hashes all its files.

    Its `packed_bytes` is 0: the run is not packed yet. Raises UsageError, DamagedRun and
    StorageError, as `RunArchive.push`.
    """
    name = directory.path.name
    row = run_row(directory)
    if row["state"] == RUNNING:
        raise UsageError(f"run {name} is still running; push it when it is over")
    problems = directory.files.problems()
    if row["state"] == DAMAGED and not problems:
        problems = [str(row["why"])]
    if problems:
        raise damaged_run(directory.path, problems)
    try:
        files = _entries(directory.path)
        manifest = (directory.path / "run.json").read_text("utf-8")
        summary = (directory.path / SUMMARY).read_text("utf-8") if SUMMARY in files else None
    except FileNotFoundError:
        raise UsageError(
            f"run {name} did not begin and has no results; push a run that has begun"
        ) from None
    except OSError as error:
        raise StorageError(
            f"cannot read run {name}: {reason_of(error)}; restore its files, or make them readable"
        ) from None
    except ValueError:
        raise damaged_run(directory.path, ["run.json or summary.json is not UTF-8"]) from None
    return ArchiveRecord(
        run_id=name,
        files=files,
        state=row["state"],
        exit_code=row["exit"],
        why=row["why"],
        packed_bytes=0,
        manifest_text=manifest,
        summary_text=summary,
    )


def _entries(folder: Path) -> dict[str, Entry]:
    found = {}
    for name in sorted(FILES):
        with contextlib.suppress(FileNotFoundError):
            found[name] = entry_of(folder / name)
    return found


def _rank(record: ArchiveRecord) -> tuple[bool, int, str]:
    """Return a sort key of the records of one run, of which the greatest is used."""
    return record.finished, record.files.get("journal", {}).get("bytes", 0), record.stem


def _rename_folder(folder: Path, target: Path) -> bool:
    """Rename the folder of a fetched run to `target`; return False if that exists already.

    Raises other OSErrors.
    """
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True
