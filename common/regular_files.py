"""Opens files of directories that others may have written: a pipe or a device is not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it. Raises OSError, also where it is something else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def size_of(path: Path) -> int:
    """Bytes of a regular file as it is now. Raises OSError, also where it is something else.

    A file system of another host may keep sizes for a while, and asks again when a file is opened.
    """
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file. Raises OSError, also where it is larger than `limit` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        # not `limit`: Python makes room for all that it is asked for
        return file.read(size)
