"""Where a run is, as it goes: shown, and noted in the run directory for those who ask later."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from osbench.coordinator.rundir import RunDirectory
from osbench.coordinator.state import Snapshot

#: Between two notes, seconds.
STATUS_S = 1.0


class Noted:
    """Passes snapshots on, and leaves the last of every second in the run directory."""

    def __init__(self, progress: Callable[[Snapshot], None], directory: RunDirectory) -> None:
        self._progress = progress
        self._directory = directory
        self._written = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        """Show and, once a second, write."""
        self._progress(snapshot)
        if time.monotonic() - self._written >= STATUS_S:
            self._written = time.monotonic()
            self._directory.write("status.json", dataclasses.asdict(snapshot), sync=False)
