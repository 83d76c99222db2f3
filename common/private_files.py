"""Files that only their owner may read, written atomically."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from osbench.common.ports import chance as secrets
from osbench.common.ports import disk
from osbench.common.regular_files import open_regular


def make_private_directory(path: Path) -> None:
    """Create a directory and its parents so that only the owner may enter (mode 0700)."""
    for missing in reversed([p for p in (path, *path.parents) if not p.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


class TooOpen(Exception):
    """A file with secrets that is accessible to others; the message says what to do."""


def read_private(path: Path, limit: int = -1) -> bytes:
    """The content of a file with secrets, its first `limit` bytes unless that is -1.

    Raises OSError, and TooOpen for a mode beyond 0600.
    """
    with open_regular(path) as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o177:
            raise TooOpen(f"has mode {mode:04o}, others may use it: run 'chmod 600 {path}'")
        return file.read(limit)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically by one of mode 0600: a crash leaves the old or the new one.

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
