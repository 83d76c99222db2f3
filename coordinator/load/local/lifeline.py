"""The coordinator's end of the pipe to its watchdog, which cleans up when the pipe closes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from osbench.coordinator.load.local import watchdog

_LOG = logging.getLogger(__name__)

#: Longest time for the watchdog to clean up, seconds: three rounds of ending processes.
CLEAR_S = 3 * (watchdog.GRACE_S + watchdog.KILL_S)

Role = Literal["server", "workers"]


def bare_environment() -> dict[str, str]:
    """Return PATH and LD_LIBRARY_PATH of our environment: no passwords of the user's shell."""
    return {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}


class Lifeline:
    """Starts a watchdog process, and sends it records of folders and processes by a pipe.

    Only the coordinator holds the pipe's writing end: if it closes, the watchdog cleans up.
    """

    def __init__(self) -> None:
        self._registrations: list[bytes] = []
        self._closed = False
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Process id of the watchdog."""
        return self._process.pid

    def register_folder(self, folder: Path) -> None:
        """Register `folder`, before it is created, so that the watchdog removes it at its end."""
        self._register({"folder": str(folder)})

    def register_keeping(self, keeping: watchdog.Keeping) -> None:
        """Register the paths where the watchdog saves the server's data of a resumable run."""
        self._register(keeping._asdict())

    def register_process(self, role: Role, leader: watchdog.Process) -> None:
        """Register a process, which the watchdog will end with its session.

        `role`: workers are ended before servers.
        """
        self._register({"role": role, "pid": leader.pid, "start": leader.start})

    def register_end(self) -> None:
        """Register that all processes have ended, so that the watchdog looks for none.

        Does nothing once this is closed.
        """
        if not self._closed:
            self._register({"ended": True})

    def check(self) -> None:
        """Start another watchdog if this one has ended, and repeat all registrations to it."""
        if self._process.poll() is not None:
            _LOG.warning("the watchdog of local mode ended unexpectedly; starting another")
            self._close_pipe()
            self._process = self._start()
            self._write(b"".join(self._registrations))

    def close(self) -> None:
        """Close the pipe, and wait until the watchdog has cleaned up: `CLEAR_S` seconds at most.

        A longer clean-up is logged and goes on. May be called repeatedly.
        """
        if not self._closed:
            self._closed = True
            self.check()
            self._close_pipe()
        try:
            self._process.wait(CLEAR_S)
        except subprocess.TimeoutExpired:
            _LOG.warning("the watchdog of local mode (pid %s) is still cleaning up", self.pid)

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

    def _register(self, record: dict[str, Any]) -> None:
        self.check()
        line = json.dumps(record).encode() + b"\n"
        self._registrations.append(line)
        self._write(line)

    def _write(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(
            BrokenPipeError
        ):  # it has just ended: `check` sends it to the next one
            stdin.write(data)

    def _close_pipe(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
