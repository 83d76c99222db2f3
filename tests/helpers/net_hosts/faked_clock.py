"""The wall clock of a host, moved against that of the machine; also in the middle of a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from helpers.import_path import import_path

#: What Python imports at start; see there.
_FAULTS = Path(__file__).parents[1] / "host_faults"
#: Where Debian and Fedora have it.
_LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")


def faketime_library() -> str:
    """The path of libfaketime; "" where it is not installed."""
    found = [path for one in _LIBRARIES for path in Path("/").glob(one.lstrip("/"))]
    return str(found[0]) if found else ""


class FakedClock:
    """A file with the seconds by which a wall clock is off; monotonic clocks stay as they are."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.step(0)

    def step(self, seconds: float) -> None:
        """Set the clock."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{seconds:+f}\n", "utf-8")
        part.rename(self._file)

    @property
    def of_python(self) -> list[str]:
        """Variables for Python processes: `time.time` and `time_ns` are off."""
        return [
            f"PYTHONPATH={import_path(_FAULTS)['PYTHONPATH']}",
            f"OSBENCH_TEST_CLOCK={self._file}",
        ]

    @property
    def of_others(self) -> list[str]:
        """Variables for other processes, by libfaketime: what the C library tells is off."""
        return [
            f"LD_PRELOAD={faketime_library()}",
            f"FAKETIME_TIMESTAMP_FILE={self._file}",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "FAKETIME_NO_CACHE=1",
        ]

    def suits(self, program: str) -> bool:
        """Whether libfaketime works in a program: it clashes with some allocators of memory."""
        variables = dict(one.split("=", 1) for one in self.of_others)
        try:
            done = subprocess.run(
                [program, "--version"],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and "libfaketime" not in done.stderr + done.stdout
