"""Scenarios that load a disk: an example of a class with several, and of one with `run`."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from osbench.plugin import atomic, scenario


class DamagedError(Exception):
    """The content of a file differs from the written content."""


class Files(scenario.Scenario):
    """Scenarios with a file per iteration."""

    def __init__(self, context: dict[str, Any]) -> None:
        super().__init__(context)
        # the context `scratch` makes a folder, see scratch.py; the task may do without it
        folder = context.get("scratch", tempfile.gettempdir())
        # no other iteration of any workload or worker has this name
        self.path = Path(folder, f"osbench-{context['run']}-{os.urandom(8).hex()}")

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Write once before the load, so that no iteration pays for the first time."""
        with tempfile.TemporaryFile() as file:
            file.write(bytes(1024))

    @scenario.configure(name="Files.write_and_read")
    def write_and_read(self, size_kib: int = 64, think_s: float = 0.0) -> None:
        """Write a file, think for a while, and read the file again."""
        data = os.urandom(size_kib * 1024)
        try:
            with atomic.ActionTimer(self, "files.write"):
                self.path.write_bytes(data)
            self.sleep_between(think_s)
            if self._read() != data:
                raise DamagedError(f"{size_kib} KiB came back changed")
        finally:
            self.path.unlink(missing_ok=True)
        self.add_output(
            additive={
                "title": "Written",
                "chart_plugin": "StackedArea",
                "data": [["KiB", size_kib]],
            }
        )

    @atomic.action_timer("files.read")
    def _read(self) -> bytes:
        return self.path.read_bytes()


@scenario.configure(name="Checksum")
class Checksum(scenario.Scenario):
    """Hash `size_kib` KiB of zeros."""

    def run(self, size_kib: int = 64) -> None:
        """Hash in one iteration."""
        with atomic.ActionTimer(self, "hash"):
            hashlib.sha256(bytes(size_kib * 1024)).hexdigest()
