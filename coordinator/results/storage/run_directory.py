"""The run directory: everything a run has decided and received, as it came.

run.json      the request: task, options, versions
journal       decisions, each on disk before it is acted on, with the count of blocks before it
blocks        result blocks as they came; a record is some of them, compressed together
status.json   progress of the run, once per second
summary.json  the finished run's numbers
digests.json  sizes and SHA-256 of the other files, see osbench.coordinator.results.storage.digests
timeline      latency over time and the numbers so far, about once per second
failure.json  the reason why there is no summary
contexts      the results of contexts, encrypted, until they are undone
plan, prepared, notes, server.rdb   data for another coordinator, see storage.resumable
log           the last lines of the coordinator's log, see storage.run_log
lock          held by the coordinator as long as it lives; empty
controls/     requests to change or end the load, see storage.control_requests
reserve       space for the last decisions and documents, freed when the disk is full
traces/       the stored part of its traces, see osbench.edges.traces.collection.archive
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgpack
import zstandard

from osbench.common.errors import (
    ConfigError,
    DamagedRun,
    DirectoryRemoved,
    OsbenchError,
    StorageError,
    UsageError,
)
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import open_regular, read_regular
from osbench.common.plugin.signature import near
from osbench.common.ports import clock as time
from osbench.common.ports import disk
from osbench.coordinator.results.storage import digests
from osbench.coordinator.results.storage.frames import FrameFile, bundles, cut_torn_tail, reason_of
from osbench.coordinator.results.storage.replay import (
    Binding,
    Replayed,
    block_bundles,
    bound_by,
    journal_records,
    replay,
)

#: Small result blocks are compressed together, up to this many bytes.
BUNDLE_BYTES = 1 << 20
#: Largest document that is read, bytes.
DOCUMENT_BYTES = 64 << 20
#: Bytes of the file `reserve`.
RESERVE_BYTES = 1 << 20
#: Who asks whether there is a coordinator has the lock for a moment, seconds.
ASKED_S = 0.5
#: A directory without a request, changed so lately, may be that of a run that begins; seconds.
NEW_S = 5.0


def run_id_of(name: str, runs: Sequence[str], place: str) -> str:
    """Return the id in `runs` (oldest first) that a name means: an id, its beginning, or "last".

    `place`: the directory or archive of the runs, for the message. Raises UsageError if no run or
    several runs fit. An id fits its run only; an empty name fits none.
    """
    fitting = (
        runs[-1:] if name == "last" else [run for run in runs if name and run.startswith(name)]
    )
    if name in runs:
        fitting = [name]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        if not runs:
            raise UsageError(f"there is no run in {place} yet; start one with `osbench-coord run`")
        like = near(name, ("last", *runs)) or f"; the newest is {runs[-1]}"
        raise UsageError(f"no run {name!r} in {place}; give the id of an existing run{like}")
    raise UsageError(f"{name!r} could be any of {', '.join(fitting)}; give more of its id")


class RunDirectory:
    """The directory of one run: reads and writes its files. Only the holder of its lock writes.

    The directory may be missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = digests.KeptFiles(path)
        #: Faults of files that are read nevertheless; "" if there are none, or it was not
        #: requested.
        self.damage = ""
        self._lock: BinaryIO | None = None
        self._journal: FrameFile | None = None
        self._blocks: FrameFile | None = None
        #: Bodies in `blocks` and their rows; None while they are not counted.
        self._bodies: int | None = None
        self._rows = 0
        self._compressor = zstandard.ZstdCompressor(level=1)

    @classmethod
    def of(cls, data_dir: str, run_id: str) -> RunDirectory:
        """Return the directory of run `run_id`, which need not exist; creates nothing."""
        return cls(Path(data_dir) / "runs" / run_id)

    @classmethod
    def create(cls, data_dir: str, run_id: str) -> RunDirectory:
        """Create and lock the directory of a new run, with mode 0700.

        Raises OsbenchError if it exists, cannot be made or locked, or has no room for the reserve.
        After an error of the file system the new directory is removed again.
        """
        found = cls.of(data_dir, run_id)
        path = found.path
        try:
            path.mkdir(mode=0o700, parents=True)
        except OSError as error:
            reason = reason_of(error)
            raise OsbenchError(
                f"cannot make the run directory {path}: {reason}; set [DEFAULT] data_dir to a "
                "writable directory"
            ) from None
        try:
            found.lock()
            found._keep_reserve()
        except OSError as error:
            found.close()
            shutil.rmtree(path, ignore_errors=True)
            reason = reason_of(error)
            raise OsbenchError(
                f"cannot make the run directory {path}: {reason}; make room there, or set "
                "[DEFAULT] data_dir"
            ) from None
        return found

    @classmethod
    def all(cls, data_dir: str) -> list[RunDirectory]:
        """Return the directories of all runs, oldest first; [] if there are none.

        Raises ConfigError if they cannot be listed.
        """
        root = Path(data_dir) / "runs"
        try:
            # without a look at each, which thousands of runs would feel
            with os.scandir(root) as entries:
                folders = sorted(entry.path for entry in entries if entry.is_dir())
        except FileNotFoundError:
            folders = []
        except OSError as error:
            raise ConfigError(
                f"[DEFAULT] data_dir: the runs in {root} cannot be listed: {reason_of(error)}; "
                "make it readable"
            ) from None
        return [cls(Path(folder)) for folder in folders]

    @classmethod
    def find(cls, data_dir: str, name: str) -> RunDirectory:
        """Return the directory of a run by its id, a unique beginning of one, or "last".

        Raises UsageError if no run or several runs fit, ConfigError if the runs cannot be listed.
        """
        root = Path(data_dir) / "runs"
        return cls(root / run_id_of(name, [run.path.name for run in cls.all(data_dir)], str(root)))

    def lock(self, *, writes: bool = True) -> None:
        """Become the only coordinator of this run: lock it, and open journal and blocks to append.

        A record that a crash left incomplete at the end of a file is cut: nothing is written behind
        it. With `writes` False journal and blocks are left closed and unchanged. Raises UsageError
        if another process holds the lock for `ASKED_S` seconds, OSError or OsbenchError if a file
        cannot be opened, DamagedRun if a file is of another run or damaged otherwise than by crash.
        """
        lock = (self.path / "lock").open("ab")
        deadline = time.monotonic() + ASKED_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    lock.close()
                    raise UsageError(
                        f"run {self.path.name} has a coordinator already; wait for its end, or "
                        f"abort it with `osbench-coord abort {self.path.name}`"
                    ) from None
            time.sleep(ASKED_S / 20)
        self._lock = lock
        # go on with a full disk: space may be freed
        with contextlib.suppress(OSError):
            self._keep_reserve()
        if not writes:
            return
        try:
            known = self._bound()
            for name, least in (("journal", known.journal), ("blocks", known.blocks)):
                cut_torn_tail(self.path / name, least=least)
        except OsbenchError:
            self.close()
            raise
        self._journal = FrameFile(self.path / "journal")
        self._blocks = FrameFile(self.path / "blocks")

    def _keep_reserve(self) -> None:
        """Allocate `RESERVE_BYTES` for the file `reserve`, which is deleted if the disk gets full.

        If the disk has no room for it, deletes it and raises OSError.
        """
        try:
            with (self.path / "reserve").open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        except OSError:
            self._free_reserve()
            raise

    def _free_reserve(self) -> bool:
        """Delete the file `reserve` to make room on a full disk; False if there is none left."""
        try:
            (self.path / "reserve").unlink()
        except OSError:
            return False
        return True

    def has_coordinator(self) -> bool:
        """Return whether a coordinator holds the run now, on any host that shares its files.

        Raises OSError if the lock exists and cannot be opened.
        """
        try:
            with open_regular(self.path / "lock") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return True
        except FileNotFoundError:
            pass
        return False

    @property
    def is_awaited(self) -> bool:
        """Whether the run may be about to begin: no directory, or a new one without a request."""
        try:
            age_s = time.time() - self.path.stat().st_mtime
        except FileNotFoundError:
            return True
        return age_s < NEW_S and not (self.path / "run.json").exists()

    def accept_damage(self) -> str:
        """Read damaged files as far as possible from now on; returns their faults, or "".

        Reads all files of the run; raises OsbenchError if one cannot be opened. The returned
        message also stands in `damage`.
        """
        found = self.files.problems()
        if not found:
            try:
                for _ in self.replay():
                    pass
            except DamagedRun as error:
                found = [error.problem]
        self.files.accepted = True
        if found:
            self.damage = f"PARTIAL: files of this run are damaged: {'; '.join(found)}"
        return self.damage

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a JSON document of the run; None if the file is missing.

        Raises DamagedRun if the file was changed or is not a JSON object, OsbenchError if it cannot
        be read. If damage was accepted, None for a file that is not a JSON object.
        """
        self.files.check(name)
        try:
            found = read_json(read_regular(self.path / name, DOCUMENT_BYTES))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OsbenchError(
                f"cannot read {self.path / name}: {error.strerror}; restore it, or make it readable"
            ) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            if self.files.accepted:
                return None
            raise DamagedRun(f"{self.path / name} is damaged")
        return found

    def refusal(self) -> str:
        """Return the reason why the run must not be deleted now, as a message; "" if it may be.

        It must not while it has a coordinator, or contexts that are not undone.
        """
        name = self.path.name
        if self.has_coordinator():
            return f"run {name} is running; abort it first"
        if (self.path / "contexts").exists():
            return (
                f"run {name} has left resources behind, and only its directory lists them; "
                f"run `osbench-coord cleanup {name}` first, or use --force"
            )
        return ""

    def delete(self, *, force: bool = False) -> None:
        """Delete the run's directory, and the output file of a run in the background.

        Raises UsageError while a coordinator holds the run, and, unless `force`, while its contexts
        are not undone. Raises OSError if a file cannot be deleted.
        """
        refusal = self.refusal()
        if refusal and not (force and not self.has_coordinator()):
            raise UsageError(refusal)
        shutil.rmtree(self.path)
        (self.path.parents[1] / "detached" / f"{self.path.name}.log").unlink(missing_ok=True)

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        """Append decisions to the journal, each with the count of blocks before it.

        Only after `lock`. Returns when they are on disk. Raises StorageError if they cannot be
        written: then none is there, and the reserve is freed for the decisions that end the run.
        """
        assert self._journal is not None
        before = self._count_bodies()
        assert self._blocks is not None
        bound = {"blocks": before, "bytes": self._blocks.size}
        self._append(self._journal, (msgpack.packb({**record, **bound}) for record in records))

    def decisions(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the journal, oldest first.

        Raises DamagedRun for an unreadable record; if damage was accepted, it is skipped.
        """
        self.files.check("journal")
        for _, record in journal_records(self.path / "journal", tolerant=self.files.accepted):
            yield record

    def keep(self, bodies: Iterable[dict[str, Any]]) -> None:
        """Append bodies of result blocks to the file `blocks`, compressed together.

        Only after `lock`. Returns when they are on disk. Raises StorageError if they cannot be
        written: then none is there, and the reserve is freed.
        """
        assert self._blocks is not None
        before = self._count_bodies()
        kept = list(bodies)
        packed = [msgpack.packb(body) for body in kept]
        compress = self._compressor.compress
        self._append(self._blocks, map(compress, bundles(packed, BUNDLE_BYTES)))
        self._bodies = before + len(packed)
        self._rows += sum(map(digests.rows_of, kept))

    def _append(self, file: FrameFile, records: Iterable[bytes]) -> None:
        try:
            file.append(records)
        except StorageError:
            self._free_reserve()
            raise

    def _count_bodies(self) -> int:
        if self._bodies is None:
            rows = list(map(digests.rows_of, self.blocks()))
            self._bodies, self._rows = len(rows), sum(rows)
        return self._bodies

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Yield the bodies of all result blocks, in the order of arrival.

        Raises DamagedRun for an unreadable record; if damage was accepted, it is skipped.
        """
        self.files.check("blocks")
        for _, bodies in block_bundles(self.path / "blocks", tolerant=self.files.accepted):
            yield from bodies

    def replay(self) -> Iterator[Replayed]:
        """Return an iterator over journal and blocks, in the order in which they were written.

        The call itself checks that both files are complete and belong together, unless damage was
        accepted. Call and iterator raise DamagedRun.
        """
        paths = self.path / "journal", self.path / "blocks"
        if self.files.accepted:
            return replay(*paths, Binding(), tolerant=True)
        for name in ("journal", "blocks"):
            self.files.check(name)
        return replay(*paths, self._bound())

    def _bound(self) -> Binding:
        """Return the run's id and the bytes of journal and blocks that were on disk once.

        The sizes are from `status.json` and the journal. Raises DamagedRun if a file is damaged,
        has fewer bytes, or is of another run.
        """
        # of a run that goes on, or was killed: what its last note says was on disk
        noted: Any = None
        # that file is written without a sync: a crash of the host may leave half of it
        with contextlib.suppress(DamagedRun):
            noted = (self.read("status.json") or {}).get("on_disk")
        sizes = {
            name: size
            for name, size in (noted.items() if isinstance(noted, dict) else ())
            if name in ("journal", "blocks") and isinstance(size, int)
        }
        run_id = str((self.read("run.json") or {}).get("run_id", ""))
        return bound_by(
            self.path / "journal", self.path / "blocks", Binding(run_id=run_id, **sizes)
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of `journal` and `blocks` on disk, by name; only after `lock`, which opens them."""
        assert self._journal is not None
        assert self._blocks is not None
        return {"journal": self._journal.size, "blocks": self._blocks.size}

    def write(self, name: str, document: dict[str, Any], *, sync: bool = True) -> None:
        """Replace a JSON document of the run atomically; `sync` waits until it is on disk.

        On a full disk, a document with `sync` may take the space of the reserve. Raises
        StorageError, and DamagedRun if the run's digests are damaged.
        """
        content = _json_bytes(document)
        try:
            self.replace(name, content, sync=sync)
        except StorageError:
            if not sync or self._lock is None or not self._free_reserve():
                raise
            self.replace(name, content, sync=sync)

    def finish(self, name: str, summary: dict[str, Any]) -> None:
        """Write the digests of all files, then the summary as file `name`: the run is finished.

        Waits until both are on disk. Raises StorageError.
        """
        blocks = {"blocks": self._count_bodies(), "rows": self._rows}
        listed = digests.new_listing(self.path, {"blocks": blocks}, _json_bytes(summary))
        self.write(digests.DIGESTS, listed)
        self.write(name, summary)

    def replace(self, name: str, content: bytes, *, sync: bool) -> None:
        """Replace a file of the run atomically; `sync` waits until it is on disk.

        If the run has digests that cover the file, the new digest is written before it. Raises
        StorageError, and DamagedRun if the digests are damaged.
        """
        amended = digests.amended_listing(self.path, name, content)
        if amended is not None:
            self._replace(digests.DIGESTS, _json_bytes(amended), sync=sync)
        self._replace(name, content, sync=sync)

    def _replace(self, name: str, content: bytes, *, sync: bool) -> None:
        target = self.path / name
        draft = target.with_suffix(".draft")
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                if sync:
                    disk.fsync(file.fileno())
            draft.replace(target)
        except OSError as error:
            # half a file would take space for nothing
            with contextlib.suppress(OSError):
                draft.unlink()
            if not self.path.is_dir():
                raise DirectoryRemoved(
                    f"cannot write {target}: the run directory was removed"
                ) from None
            raise StorageError(
                f"cannot write {target}: {reason_of(error)}; make room there"
            ) from None

    def close(self) -> None:
        """Close all files, delete the reserve and release the lock. May be called repeatedly."""
        if self._lock is not None and not self._lock.closed:
            self._free_reserve()
        for file in (self._journal, self._blocks, self._lock):
            if file is not None:
                file.close()


def _json_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode()
