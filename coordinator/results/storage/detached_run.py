"""A run that another process starts in the background: its process, and its printed output."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from osbench.common.secrets.masking import mask_text
from osbench.common.text.escaping import escaped
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_retention import check_writable

#: Folder of the data directory with what such runs print.
FOLDER = "detached"
#: What is read of a file: its end, bytes and lines.
_TAIL_BYTES = 16 << 10
_TAIL_LINES = 40


def own_command(*arguments: str) -> list[str]:
    """Return the command that runs `osbench-coord` with `arguments` in this Python interpreter."""
    # -P keeps the working directory, which could hide modules, out of the import path
    return [sys.executable, "-P", "-m", "osbench.coordinator.main", *arguments]


class DetachedRun:
    """A run as a background process in its own session: Ctrl-C here does not end it.

    The end of the process that started it does not end it either.
    """

    def __init__(self, data_dir: str, run_id: str, arguments: Sequence[str]) -> None:
        """Start `osbench-coord` with `arguments`; its output goes to `<data_dir>/detached/RUN.log`.

        Raises ConfigError if the data directory cannot be written, OSError if the log or the
        process cannot be created.
        """
        check_writable(data_dir)
        self.run_id = run_id
        self._directory = RunDirectory.of(data_dir, run_id).path
        self._output = Path(data_dir) / FOLDER / f"{run_id}.log"
        self._output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                own_command(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def begun(self) -> bool:
        """Return whether the run directory has its `run.json`: the run shows its progress then."""
        return (self._directory / "run.json").exists()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, negative if a signal ended it; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for the end of the process, without a limit; returns its exit code."""
        return self._process.wait()

    def interrupt(self) -> None:
        """Send SIGINT to the process, as Ctrl-C would; does nothing if the process has ended."""
        self._process.send_signal(signal.SIGINT)

    def output(self) -> str:
        """Return all that the process has printed so far, unmasked. Raises OSError."""
        return self._output.read_text("utf-8", "replace")

    def said(self) -> str:
        """Return the last lines of the output, masked and escaped; "" if there are none.

        At most `_TAIL_LINES` lines of the last `_TAIL_BYTES` bytes. An unreadable file counts as
        empty.
        """
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, self._output.stat().st_size - _TAIL_BYTES))
                text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(escaped(mask_text(text), breaks=True).splitlines()[-_TAIL_LINES:])

    def forget(self) -> None:
        """Delete the file of its output: for a run without a run directory to be deleted with."""
        self._output.unlink(missing_ok=True)
