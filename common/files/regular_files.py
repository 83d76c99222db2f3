"""Reads regular files only, never pipes or devices; writes private files atomically."""

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
    """Open a regular file for reading in binary mode.

    Raises OSError if it is missing, unreadable or not a regular file; does not wait for a pipe.
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
    """Return the size of a regular file in bytes. Raises OSError as `open_regular` does.

    Opens the file, since a network file system may report an old size until then.
    """
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file.

    Raises OSError as `open_regular` does, and if the file has more than `limit` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        # not `limit`: Python makes room for all that it is asked for
        return file.read(size)


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700; existing ones keep their mode.

    Raises OSError.
    """
    for missing in reversed([p for p in (path, *path.parents) if not p.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


class TooOpen(Exception):
    """Raised for a file with secrets that other users may access; the message has the remedy."""


def read_private(path: Path, limit: int | None = None) -> bytes:
    """Return the content of a private file.

    Raises OSError, also if it has more than `limit` bytes, and TooOpen if its mode allows more than
    0600 does.
    """
    with open_regular(path) as file:
        found = os.fstat(file.fileno())
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o177:
            raise TooOpen(f"has mode {mode:04o}, others may use it")
        if limit is not None and found.st_size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read(found.st_size)


def write_private(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Replace a file by `content` atomically, mode 0600; a crash leaves the old or the new content.

    Returns when it is on disk; with `synced=False` sooner. Creates missing parent directories (mode
    0700). Raises OSError.
    """
    make_private_directory(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if synced:
                disk.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        raise
    if synced:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Write a directory's entries to disk, so that changes survive a crash. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.fsync(descriptor)
    finally:
        os.close(descriptor)
