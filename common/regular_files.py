"""Regular files, also in directories that others write to, and private ones, written atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from osbench.common.ports import chance as secrets
from osbench.common.ports import disk


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it.

    Raises OSError, also if it is something else: a pipe or a device is not waited for.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def size_of(path: Path) -> int:
    """Return a regular file's size in bytes now. Raises OSError, also if it is something else.

    A file system of another host may keep sizes for a while, and asks again when a file is opened.
    """
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_regular(path: Path, limit: int) -> bytes:
    """Return a regular file's content. Raises OSError, also if it has more than `limit` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        # not `limit`: Python makes room for all that it is asked for
        return file.read(size)


def make_private_directory(path: Path) -> None:
    """Create a directory and its parents so that only the owner may enter (mode 0700)."""
    for missing in reversed([p for p in (path, *path.parents) if not p.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


class TooOpen(Exception):
    """A file with secrets that is accessible to others; the message names the remedy."""


def read_private(path: Path, limit: int = -1) -> bytes:
    """Return the content of a file with secrets, its first `limit` bytes unless that is -1.

    Raises OSError, and TooOpen for a mode beyond 0600.
    """
    with open_regular(path) as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o177:
            raise TooOpen(f"has mode {mode:04o}, others may use it: run 'chmod 600 {path}'")
        return file.read(limit)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically by a file of mode 0600: a crash leaves the old or the new one.

    Raises OSError.
    """
    make_private_directory(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            disk.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.fsync(descriptor)
    finally:
        os.close(descriptor)
