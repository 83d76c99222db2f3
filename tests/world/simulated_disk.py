"""The disk of coordinators: slow, or full; a crash of a host tears what was not synced."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from osbench.common.errors import StorageError
from osbench.coordinator.results.storage import frames
from osbench.coordinator.results.storage.run_directory import RESERVE_BYTES, RunDirectory
from world import present
from world.fibers import Process

#: How long a sync takes, seconds: least, and most where the disk is not slow.
SYNC_S = (0.0002, 0.002)


class AppendFile:
    """A file that is written at its end."""

    def __init__(self, disk: SimulatedDisk, path: Path, file: BinaryIO, process: Process) -> None:
        self._disk = disk
        self._file = file
        self.path = path
        self.process = process
        self.descriptor = file.fileno()
        self.synced = os.fstat(self.descriptor).st_size

    def fileno(self) -> int:
        """Its descriptor."""
        return self.descriptor

    def write(self, data: bytes | memoryview) -> int:
        """Write; half of it where the disk becomes full."""
        if not self._disk.takes(self.path, len(data)):
            self._file.write(data[: len(data) // 2])
            present.world().disk_was_full(Path(self.path).parent)
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(data)

    def close(self) -> None:
        """Close it."""
        self._disk.files.pop(self.descriptor, None)
        self._file.close()

    def tear(self) -> None:
        """Lose some of what was not synced."""
        size = os.fstat(self.descriptor).st_size
        if size > self.synced:
            os.ftruncate(self.descriptor, present.scheduler().chance.randint(self.synced, size))


class SimulatedDisk:
    """One disk, which all coordinators share."""

    def __init__(self) -> None:
        self.full_until = 0
        self.slowest_s = SYNC_S[1]
        #: Open files by descriptor.
        self.files: dict[int, AppendFile] = {}
        #: Documents that nobody waited for to be on disk, by the process that wrote them.
        self.unsynced: dict[str, set[Path]] = {}
        #: Bytes that were written where there was a reserve, while the disk was full.
        self._of_reserve: dict[Path, int] = {}
        self.syncs = 0

    def opened(self, path: Path, file: BinaryIO) -> AppendFile:
        """A file for the process that runs."""
        fiber = present.fiber()
        assert fiber is not None
        found = AppendFile(self, path, file, fiber.process)
        self.files[found.descriptor] = found
        return found

    def takes(self, path: Path, size: int) -> bool:
        """Whether there is room for so many bytes."""
        if self.full_until <= present.scheduler().now:
            self._of_reserve.pop(path.parent, None)
            return True
        used = self._of_reserve.get(path.parent, 0) + size
        if (path.parent / "reserve").exists() or used > RESERVE_BYTES:
            return False
        self._of_reserve[path.parent] = used
        return True

    def sync(self, descriptor: int) -> None:
        """Wait until what was written is on disk."""
        size = os.fstat(descriptor).st_size
        self.syncs += 1
        scheduler = present.scheduler()
        scheduler.wait(scheduler.chance.uniform(SYNC_S[0], self.slowest_s))
        file = self.files.get(descriptor)
        if file is not None:
            file.synced = max(file.synced, size)

    def crash(self, process: Process, *, host: bool) -> None:
        """A process is gone, and its files are closed; with its host, what was not synced."""
        for file in [one for one in self.files.values() if one.process is process]:
            if host:
                file.tear()
            file.close()
        for path in sorted(self.unsynced.pop(process.name, ())) if host else ():
            chance = present.scheduler().chance
            if path.exists() and chance.random() < 0.5:
                os.truncate(path, chance.randint(0, path.stat().st_size))


_open = frames.FrameFile.__init__
_replace: Callable[..., None] = RunDirectory._replace


def _opened(file: frames.FrameFile, path: Path) -> None:
    _open(file, path)
    file._file = present.world().disk.opened(path, file._file)  # type: ignore[assignment]


def _replaced(directory: RunDirectory, name: str, content: bytes, *, sync: bool) -> None:
    disk, fiber = present.world().disk, present.fiber()
    path = directory.path / name
    if not disk.takes(path, len(content)):
        raise StorageError(f"cannot write {path}: no space left on device")
    _replace(directory, name, content, sync=sync)
    if fiber is not None:
        unsynced = disk.unsynced.setdefault(fiber.process.name, set())
        (unsynced.discard if sync else unsynced.add)(path)


def install() -> None:
    """Have coordinators write to the disk of the present world."""
    frames.FrameFile.__init__ = _opened  # type: ignore[method-assign]
    RunDirectory._replace = _replaced  # type: ignore[method-assign]
