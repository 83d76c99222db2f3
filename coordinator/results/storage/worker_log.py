"""Lines that workers printed and logged during a run, read from its result blocks."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import DamagedRun
from osbench.coordinator.results.storage.frames import behind, placed_frames
from osbench.coordinator.results.storage.replay import bodies_of
from osbench.coordinator.results.storage.run_directory import RunDirectory


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """A text that a worker process printed or logged during a run, as a result block has it."""

    #: Redis time, seconds since 1970-01-01 UTC.
    at: float
    #: The name of its membership: an incarnation, and a number for a later one.
    worker: str
    #: stdout, stderr, or a level of logging.
    source: str
    #: Counts the workloads of the run from 0; -1 outside iterations.
    workload: int
    #: Counts from 1; 0 outside iterations.
    iteration: int
    #: May have several lines.
    text: str


class WorkerLog:
    """Reads the printed and logged entries of a run, which may still go on."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._path = directory.path / "blocks"
        self._offset = 0
        #: By worker: entries that were left out or cut, and others that cannot be read.
        self.cut: Counter[str] = Counter()

    def fresh(self) -> Iterator[LogEntry]:
        """Yield the entries since the last call, in the order of arrival; `cut` grows meanwhile.

        Raises DamagedRun, or OsbenchError if the file cannot be read. If damage was accepted,
        unreadable records are skipped.
        """
        self._directory.files.check("blocks")
        tolerant = self._directory.files.accepted
        for offset, record in placed_frames(self._path, self._offset, tolerant=tolerant):
            with contextlib.suppress(*((DamagedRun,) if tolerant else ())):
                for body in bodies_of(self._path, offset, record):
                    yield from self._entries(body)
            self._offset = behind(offset, record)

    def _entries(self, body: Mapping[str, Any]) -> Iterator[LogEntry]:
        # runs of older releases have none
        raw, cut = body.get("log", ()), body.get("log_cut", 0)
        worker = str(body["incarnation"])
        if isinstance(cut, int) and cut > 0:
            self.cut[worker] += cut
        for one in raw if isinstance(raw, (list, tuple)) else ():
            entry = _entry(worker, one)
            if entry is None:
                self.cut[worker] += 1
            else:
                yield entry


def _entry(worker: str, raw: Any) -> LogEntry | None:
    """Return an entry of `Block.log` as a `LogEntry`; None if it has another shape."""
    match raw:
        case [int() | float() as at, str(source), int(workload), int(iteration), str(text)]:
            return LogEntry(
                at=float(at),
                worker=worker,
                source=source,
                workload=workload,
                iteration=iteration,
                text=text,
            )
    return None
