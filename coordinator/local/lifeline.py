"""The coordinator's end of the pipe to its watchdog: when it closes, the watchdog clears up."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from osbench.coordinator.local import watchdog

_LOG = logging.getLogger(__name__)

#: Seconds for the watchdog to do all that the coordinator left to it: three rounds.
_CLEAR_S = 3 * (watchdog.GRACE_S + watchdog.KILL_S)

Role = Literal["server", "workers"]


def bare_environment() -> dict[str, str]:
    """The environment of processes that need none: no password of the user's shell goes there."""
    return {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}


class Lifeline:
    """A running watchdog and what it was told. Only the coordinator holds the pipe's end."""

    def __init__(self) -> None:
        self._registrations: list[bytes] = []
        self._closed = False
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Process id of the watchdog."""
        return self._process.pid

    def register_folder(self, folder: Path) -> None:
        """Have `folder` removed at the end; told before it is made, so that it never stays."""
        self._register({"folder": str(folder)})

    def register_process(self, role: Role, leader: watchdog.Process) -> None:
        """Have a process and its session ended at the end."""
        self._register({"role": role, "pid": leader.pid, "start": leader.start})

    def check(self) -> None:
        """Start another watchdog if somebody ended this one."""
        if self._process.poll() is not None:
            _LOG.warning("the watchdog of local mode ended unasked; starting another")
            self._close_pipe()
            self._process = self._start()
            self._write(b"".join(self._registrations))

    def close(self) -> None:
        """Let go, and wait until the watchdog has cleared what is left and is gone."""
        if not self._closed:
            self._closed = True
            self.check()
            self._close_pipe()
        try:
            self._process.wait(_CLEAR_S)
        except subprocess.TimeoutExpired:
            _LOG.warning("the watchdog of local mode (pid %s) is still clearing up", self.pid)

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid())],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=bare_environment(),
            start_new_session=True,
        )

    def _register(self, fact: dict[str, Any]) -> None:
        self.check()
        line = json.dumps(fact).encode() + b"\n"
        self._registrations.append(line)
        self._write(line)

    def _write(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it just died: `check` tells the next one
            stdin.write(data)

    def _close_pipe(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
