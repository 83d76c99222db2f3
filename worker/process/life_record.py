"""Records of the processes of a host in their data directory, for health checks.

A record is a file that its process keeps locked, which shows that it lives, and writes again and
again. No server is needed to read it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import ConfigError
from osbench.common.files.regular_files import make_private_directory
from osbench.common.ports import clock as time

#: Bytes of a record for what changes. Each record of a process has the same size, so that one write
#: replaces all of the last.
_CHANGING_BYTES = 256


class LifeRecord:
    """The life record of this process for health checks: a locked file, written again and again.

    It has the state, the time of writing and the time of last progress, monotonic seconds.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Create and lock the file `path`, with state "starting"; its folder is made if missing.

        `facts` are in each version of the record. Raises ConfigError if the file cannot be written.
        """
        self._path = path
        self._facts = facts
        self._size = len(json.dumps(dict(facts))) + _CHANGING_BYTES
        # a reader takes an unlocked file for the record of a dead process, and removes it
        hidden = path.with_name(f".{path.name}")
        try:
            make_private_directory(path.parent)
            self._file = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._write("starting", time.monotonic())
            hidden.rename(path)
        except OSError as error:
            raise ConfigError(
                f"[DEFAULT] data_dir: cannot write {path}: {error.strerror}; name a directory that "
                "this user can write to"
            ) from None

    def tell(self, state: str, turned: float | None = None) -> None:
        """Write the record: `state`, the present time, and `turned`, when progress was made.

        `turned` is in monotonic seconds; None means now. Errors of writing are ignored.
        """
        # a full disk is reported when it costs results
        with contextlib.suppress(OSError):
            self._write(state, time.monotonic() if turned is None else turned)

    def _write(self, state: str, turned: float) -> None:
        record = {**self._facts, "state": state, "told": time.monotonic(), "turned": turned}
        os.pwrite(self._file, json.dumps(record).encode().ljust(self._size), 0)

    def handover(self) -> dict[str, Any]:
        """Return the record for a program that goes on with it, as `resting.begin` takes it."""
        return {"fd": self._file, "size": self._size, "path": str(self._path), "facts": self._facts}

    def close(self) -> None:
        """Remove the file and its lock; errors are ignored."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self._file)


def living(directory: Path, host: str) -> dict[str, dict[str, Any]]:
    """Return the records of a host's living processes by file name; delete files of dead ones.

    A process lives if its file is locked. `host`: beginning of the file names. Unreadable records
    are left out.
    """
    found = {}
    for path in sorted(directory.glob(f"{host}.*")):
        record = _living(path)
        if record is not None:
            found[path.name] = record
    return found


def _living(path: Path) -> dict[str, Any] | None:
    with contextlib.suppress(FileNotFoundError, ValueError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return dict(json.loads(file.read()))
        path.unlink(missing_ok=True)
    return None
