"""Shell commands of `gate` that change or restart a running service, each bounded in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from osbench.common.errors import OsbenchError
from osbench.common.ports import clock
from osbench.coordinator.formatting import duration
from osbench.coordinator.front.cli.one_run import Interrupts
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.load.local.child import last_lines

#: Between two looks whether a command has ended, and between two lines of progress, seconds.
_LOOK_S, _SPEAK_S = 0.05, 30.0
#: Time of a command from SIGTERM to SIGKILL, seconds.
_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class ServiceCommand:
    """A shell command of the user that acts on the service under test."""

    #: The option that gave it: "--change".
    option: str
    #: "" for nothing.
    command: str
    #: Gets its output, appended.
    log: Path
    #: Longest time until it ends, seconds.
    within_s: float
    #: An interrupt lets it end, since a service half changed is worse than either side; a second
    #: interrupt ends it.
    spared: bool = False

    def run(self, interrupts: Interrupts, progress: Progress) -> float:
        """Run the command to its end; return its duration in seconds.

        Processes that it leaves behind keep running, such as the service that it has started. It
        ends early after an interrupt. Raises OsbenchError if it fails or takes longer than
        `within_s`.
        """
        if not self.command:
            return 0.0
        progress.say(f"{self.option}: running; output in {self.log}")
        began = clock.monotonic()
        with os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as output:
            # its own session: Ctrl-C at the terminal does not reach it
            process = subprocess.Popen(  # noqa: S602 - the command of the user
                self.command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._await(process, interrupts, progress, began)
        finally:
            if process.poll() is None:
                _end(process)
        code = process.returncode
        if code and not interrupts.count:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise OsbenchError(
                f"{self.option} {how}; correct the command. The last lines of {self.log}:\n"
                f"{last_lines(self.log)}"
            )
        return clock.monotonic() - began

    def _await(
        self,
        process: subprocess.Popen[bytes],
        interrupts: Interrupts,
        progress: Progress,
        began: float,
    ) -> None:
        """Wait for the end of the process, or for an interrupt that ends it."""
        said, speak_at = False, began + _SPEAK_S
        while process.poll() is None:
            now = clock.monotonic()
            if interrupts.count > int(self.spared):
                return
            if interrupts.count and not said:
                progress.say(f"{self.option} ends first; interrupt again to end it now")
                said = True
            if now - began > self.within_s:
                raise OsbenchError(
                    f"{self.option} has not ended within {duration(self.within_s)}; it may leave"
                    f" the service half changed. Correct it, or raise --within. The last lines of"
                    f" {self.log}:\n{last_lines(self.log)}"
                )
            if now >= speak_at:
                progress.say(f"{self.option}: running for {duration(now - began)}")
                speak_at += _SPEAK_S
            clock.sleep(_LOOK_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its session: SIGTERM, and SIGKILL after `_GRACE_S`."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return
