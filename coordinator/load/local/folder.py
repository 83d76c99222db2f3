"""The private folder of local mode: with a short path, accessible to this user only."""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from osbench.common.errors import StoreError
from osbench.coordinator.load.local.lifeline import Lifeline

#: A socket's path has at most 107 bytes (unix(7)), 35 of them after the parent directory.
_PARENT_BYTES = 72
#: Paths that need no quoting in a URL, a configuration file or a server's arguments.
_PLAIN = re.compile(r"/[A-Za-z0-9_./-]*")


def make_folder(lifeline: Lifeline) -> Path:
    """Register a new private folder with the watchdog, create it with mode 0700; return its path.

    Raises StoreError if no directory for temporary files is suitable.
    """
    folder = _parent() / f"osbench-{secrets.token_hex(8)}"
    lifeline.register_folder(folder)
    folder.mkdir(mode=0o700)
    return folder


def _parent() -> Path:
    refused = []
    for parent in _parents():
        reason = _refusal(parent)
        if reason is None:
            return parent
        refused.append(f"\n  {parent}: {reason}")
    raise StoreError(
        "local mode found no directory for its socket; set TMPDIR to a private one of short path"
        + "".join(refused)
    )


def _parents() -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield Path(runtime)
    yield Path(tempfile.gettempdir())
    yield Path("/tmp")  # noqa: S108 - the folder in it is made by us, with a random name and 0700


def _refusal(parent: Path) -> str | None:
    if not _PLAIN.fullmatch(str(parent)):
        return "its path has characters that would need quoting in a socket's URL"
    if len(os.fsencode(parent)) > _PARENT_BYTES:
        return "its path is too long for a socket"
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        return "is not a writable directory"
    mode = parent.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        return "other users can replace files in it"
    return None
