"""A process of local mode: it has its own session, logs to a file, and is watched."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from osbench.coordinator.load.local import watchdog
from osbench.coordinator.load.local.lifeline import Lifeline, Role

_TAIL_LINES = 12
_TAIL_BYTES = 4096
_REAP_S = 1.0


def last_lines(path: Path) -> str:
    """Return the last lines of a log file, indented; "" if it is empty or cannot be read.

    At most `_TAIL_LINES` lines of the last `_TAIL_BYTES` bytes.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in text.splitlines()[-_TAIL_LINES:])


class Child:
    """A process of local mode in its own session: Ctrl-C at the terminal does not reach it.

    It is the private server, the supervisor of the workers, or a service of `gate`.
    """

    def __init__(
        self,
        *,
        role: Role,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        lifeline: Lifeline,
        cwd: Path | None = None,
        waits: bool = False,
    ) -> None:
        """Start the process and register it with the watchdog of `lifeline`. Raises OSError.

        `environment` is all that it gets. Its output is appended to `log`, a file of mode 0600.
        With `waits` the process reads the input that its method `tell` writes; else it has none.
        """
        self.log = log
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as output:
            self._process = subprocess.Popen(  # noqa: S603 - the server found, or our own worker
                command,
                stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=environment,
                start_new_session=True,
                umask=0o077 if role == "server" else -1,
            )
        leader = watchdog.find(self._process.pid)
        assert leader, "a child that was not waited for is at least a zombie"
        #: Its entry in the process table; it leads its session.
        self.leader = leader
        lifeline.register_process(role, leader)

    def tell(self, data: bytes) -> None:
        """Write `data` to the input of a process started with `waits`, and close its input.

        Does nothing if the process has ended: `exit_reason` reports it.
        """
        stdin = self._process.stdin
        assert stdin is not None, "it waits"
        with contextlib.suppress(BrokenPipeError), stdin:
            stdin.write(data)

    def exit_reason(self) -> str | None:
        """Return how the process ended, with the last lines of its log; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return f"{how}; {self.log_end()}"

    def log_end(self) -> str:
        """Return "the last lines of its log:" and these lines, or "its log is empty"."""
        tail = last_lines(self.log)
        return f"the last lines of its log:\n{tail}" if tail else "its log is empty"

    def end(
        self,
        grace_s: float,
        folder: Path | None = None,
        spared: Sequence[watchdog.Process] = (),
        hurried: Callable[[], bool] = lambda: False,
    ) -> bool:
        """End the process with its session: SIGTERM, and SIGKILL after `grace_s` seconds.

        With `folder` also all processes that have it in their environment (`watchdog.MARK`), except
        the sessions of `spared`. SIGKILL comes at once when `hurried` returns true. Returns True
        when all have ended, False some seconds after SIGKILL.
        """
        mark = str(folder) if folder else None
        ended = watchdog.end([self.leader], grace_s, mark, spared, hurried)
        self.reap()
        return ended

    def kill(self) -> bool:
        """Send SIGKILL to the process, and to nothing else of its session; wait as `reap` does."""
        self._process.kill()
        return self.reap()

    def reap(self) -> bool:
        """Collect the exit code of an ending process, so that it leaves the process table.

        Waits a second at most; returns whether it has ended. Its input is closed before.
        """
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        # after its main thread has ended, a process looks dead before it can be waited for
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)
            return True
        return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
