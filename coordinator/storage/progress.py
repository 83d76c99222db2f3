"""Where a run is, as it goes: shown, and noted in the run directory for those who ask later."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from osbench.coordinator.storage.run_directory import RunDirectory

#: Between two notes, seconds.
STATUS_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a workload, for displays."""

    workload: int
    name: str
    #: preparing, running, stopping.
    phase: str
    elapsed_s: float
    #: Iterations in the plan; None is without end.
    planned: int | None
    settled: int
    ok: int
    failed: int
    busy: int
    workers: int
    away: bool
    #: SLA criteria that the results so far do not meet.
    failing: tuple[str, ...] = ()


def contexts_at(what: str, done: int, planned: int, elapsed_s: float) -> Snapshot:
    """How far a context is, while there is no load."""
    return Snapshot(
        workload=-1,
        name="contexts",
        phase=what,
        elapsed_s=elapsed_s,
        planned=planned,
        settled=done,
        ok=done,
        failed=0,
        busy=0,
        workers=0,
        away=False,
    )


class ProgressRecorder:
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
