"""The first step of local mode, which needs no task: watchdog, folder, workers that import.

Taken while the coordinator is still importing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from osbench.common.errors import OsbenchError, StoreError
from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.child import Child
from osbench.coordinator.load.local.lifeline import Lifeline
from osbench.coordinator.load.local.settings import worker_environment

#: A socket's path has at most 107 bytes (unix(7)), 35 of them after the parent directory.
_PARENT_BYTES = 72
#: Paths that need no quoting in a URL, a configuration file or a server's arguments.
_PLAIN = re.compile(r"/[A-Za-z0-9_./-]*")
#: -P keeps the user's working directory, which could hide modules, out of the import path.
_COMMAND = (sys.executable, "-P", "-m", "osbench.worker.main", "--prepared")


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


class LocalStart:
    """The first step of local mode: a watchdog, a private folder, and waiting workers.

    The workers import modules while they wait for their arguments.
    """

    def __init__(self, *, workers: bool = True) -> None:
        """Start the processes at once; without `workers` only the watchdog.

        Raises StoreError, OSError; then all that was started is ended.
        """
        self.lifeline = Lifeline()
        #: The process that will supervise the workers.
        self.workers: Child | None = None
        try:
            #: Private folder, mode 0700.
            self.folder = make_folder(self.lifeline)
            #: Log file of the workers' stdout and stderr.
            self.worker_log = self.folder / "workers.log"
            if workers:
                self.workers = self._begun(_COMMAND, waits=True)
        except BaseException:
            # the watchdog ends what there is
            self.lifeline.close()
            raise

    def begin_workers(
        self, arguments: Sequence[str], command: Sequence[str] = (), modules: Sequence[str] = ()
    ) -> Child:
        """Send the waiting workers their arguments; if none wait, start `command` with them.

        Waiting workers import `modules` before they are forked. Returns the process that supervises
        the workers. May raise OSError.
        """
        if self.workers is None:
            self.workers = self._begun([*command, *arguments])
        else:
            order = {
                "arguments": list(arguments),
                "environment": self._environment(),
                "modules": list(modules),
            }
            self.workers.tell(json.dumps(order).encode() + b"\n")
        return self.workers

    def close(self) -> None:
        """End all processes by the watchdog, which removes the folder; waits until it has ended."""
        self.lifeline.close()
        if self.workers is not None:
            self.workers.reap()

    def _begun(self, command: Sequence[str], *, waits: bool = False) -> Child:
        return Child(
            role="workers",
            command=command,
            environment=self._environment(),
            log=self.worker_log,
            lifeline=self.lifeline,
            waits=waits,
        )

    def _environment(self) -> dict[str, str]:
        return worker_environment() | {watchdog.MARK: str(self.folder)}


class EarlyStart:
    """Makes a `LocalStart` for the first run of a command; ends it on exit if no run took it."""

    def __init__(self, *, wanted: bool) -> None:
        """Start at once if `wanted`; errors are ignored, as the run itself will report them."""
        self._start: LocalStart | None = None
        if wanted:
            with contextlib.suppress(OsbenchError, OSError):
                self._start = LocalStart()

    def take(self) -> LocalStart | None:
        """Return the `LocalStart` to the first caller; None if there is none, or it was taken."""
        start, self._start = self._start, None
        return start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if (start := self.take()) is not None:
            start.close()
