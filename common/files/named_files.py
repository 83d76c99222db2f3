"""Reads files that a user names, with limits on size and wait: they may be pipes or devices."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from pathlib import Path

#: Largest document that a person writes: a task, arguments, a deployment, a plug-in.
DOCUMENT_BYTES = 16 << 20
#: Largest file of certificates: that of a system has some 200 KiB.
PEM_BYTES = 16 << 20

#: Longest wait for somebody who writes into a pipe, and for each of its parts, seconds.
PATIENCE_S = 60.0

_PIECE = 1 << 20


def expanded(name: Path | str) -> Path:
    """Return a path with ~ replaced by the home directory; unchanged if that is unknown."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def read_named(path: Path | str, limit: int = DOCUMENT_BYTES) -> bytes:
    """Return the content of a file, pipe or device that a user named, at most `limit` bytes.

    Raises OSError if it is larger or unreadable, and if a pipe brings no data for PATIENCE_S
    seconds.
    """
    # a pipe without a writer would hold `open`
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_size > limit:
            raise _too_large(limit, path)
        waits = stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
        os.set_blocking(descriptor, True)
        return _read_descriptor(descriptor, limit, path, PATIENCE_S if waits else None)
    finally:
        os.close(descriptor)


def read_text(path: Path | str, limit: int = DOCUMENT_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `limit` bytes; CR LF and CR become LF.

    Raises OSError as `read_named` does, and UnicodeDecodeError.
    """
    return _text(read_named(path, limit))


def read_stdin(limit: int = DOCUMENT_BYTES) -> str:
    """Return all text of standard input; waits for its end.

    Raises OSError if it is closed or has more than `limit` characters.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "-")
    text = sys.stdin.read(limit + 1)
    if len(text) > limit:
        raise _too_large(limit, "-")
    return text


def _read_descriptor(
    descriptor: int, limit: int, path: Path | str, patience_s: float | None
) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if patience_s is not None and not _is_ready(descriptor, patience_s):
            raise OSError(errno.ETIMEDOUT, "is a pipe that no process writes to", str(path))
        part = os.read(descriptor, min(_PIECE, limit + 1 - size))
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _too_large(limit, path)


def _is_ready(descriptor: int, patience_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_s * 1000))


def _too_large(limit: int, path: Path | str) -> OSError:
    size = f"{limit:,} bytes" if limit & 0xFFFFF else f"{limit >> 20} MiB"
    return OSError(errno.EFBIG, f"is larger than {size}", str(path))


def _text(content: bytes) -> str:
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
