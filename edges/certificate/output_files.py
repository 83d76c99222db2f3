"""Files that a command writes for others: complete, or as they were before."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from osbench.common.errors import UsageError
from osbench.common.files.regular_files import write_private
from osbench.coordinator.front.cli.base import echo, write_file
from osbench.coordinator.results.storage.frames import reason_of

#: Mode of a new file, without the bits of the umask.
_MODE = 0o666


def replace_file(path: Path, content: str) -> None:
    """Write a file that the user asked for, atomically, and print its path to stderr.

    A crash or a full disk leaves the file that was there before. A file that exists keeps its mode,
    and a link leads to the new content. Devices and pipes are written as they are. Raises
    UsageError if it cannot be written.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    if not target.parent.is_dir() or (mode is not None and not stat.S_ISREG(mode)):
        write_file(path, content)
        return
    try:
        write_private(target, content.encode())
        target.chmod(_MODE & ~_umask() if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {reason_of(error)}; free space, or give a path in a writable"
            " folder"
        ) from None
    echo(f"wrote {path}", err=True)


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _umask() -> int:
    # only setting it shows it; a command has one thread here
    found = os.umask(0o077)
    os.umask(found)
    return found
