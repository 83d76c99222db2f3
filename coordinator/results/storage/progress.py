"""Progress of a run as it goes on: snapshots for displays, saved in `status.json`."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import StorageError
from osbench.common.ports import clock as time
from osbench.coordinator.formatting import count
from osbench.coordinator.results.storage.run_directory import RunDirectory

LOG = logging.getLogger(__name__)

#: Between two notes, seconds.
STATUS_S = 1.0

#: Figures that are older than this are not current, seconds.
STALE_S = 5.0

#: Points of a workload's trail at most; of a fuller one every second point is left out.
TRAIL = 120

#: A worker process that takes this much of a core may be the limit.
HOT_CPU = 0.9
#: States of a worker process that takes no part in the load.
ODD_STATES = frozenset({"silent", "lost", "stuck"})


@dataclass(frozen=True, kw_only=True)
class CriterionState:
    """The state of an SLA criterion of a workload, judged by the results so far."""

    name: str
    met: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class WorkerProgress:
    """State and figures of a worker process under the load of one workload, at one moment."""

    #: host:pid, and its label.
    name: str
    label: str
    #: That of its heartbeat, or silent, lost.
    state: str
    #: Virtual users that it has, and how many of them have an iteration in hand.
    users: int
    busy: int
    #: Iterations that ended per second, lately.
    rate: float
    #: 1.0 is one core.
    cpu: float
    #: 99 % of its iterations started at most this late so far; None before the first.
    lag_p99_s: float | None
    #: Its virtual users are coroutines of one event loop, not threads.
    coroutines: bool = False
    #: Share of the cores of its host that any process uses; None if that is not known.
    host_cpu: float | None = None
    #: Seconds without a sign of life, of a worker that is silent or lost; else 0.
    silent_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RecentProgress:
    """Figures of a workload over its last seconds, `span_s` of them."""

    #: Seconds that the figures are over.
    span_s: float
    #: Iterations that ran, per second.
    rate: float
    #: Of the iterations that ended well; None if there are none.
    p50_s: float | None
    p95_s: float | None
    #: Iterations that failed or timed out, and their fraction of the iterations that ran, 0 to 1.
    failed: int
    failed_share: float
    #: Type and message of the error that most of them ended with; "" if none failed.
    error: str


@dataclass(frozen=True, kw_only=True)
class FailureProgress:
    """A kind of failure of a workload so far: an error type with a message, and its count."""

    #: Name of the exception class, and its message without secrets; folded if messages differ in
    #: numbers and ids only.
    type: str
    message: str
    #: Iterations that failed so.
    count: int
    #: The action in which the first of them failed, and the status code of its response; "" and 0
    #: for none.
    step: str
    status: int


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The progress of a workload at one moment, or of contexts before there is load.

    Made some times per second for displays.
    """

    workload: int
    name: str
    #: preparing, running, paused, stopping.
    phase: str
    elapsed_s: float
    #: Iterations in the plan; None is without end.
    planned: int | None
    #: Iterations in a final state, dropped arrivals among them.
    settled: int
    dropped: int
    ok: int
    failed: int
    busy: int
    workers: int
    #: The servers that the coordinator cannot reach, with their addresses; "" if there are none.
    away: str
    #: SLA criteria that the results so far do not meet.
    failing: tuple[str, ...] = ()
    #: Iterations settled per second, lately.
    rate: float = 0.0
    #: Seconds until the load ends, by its duration or at this rate; None if unknown.
    left_s: float | None = None
    #: The name of the workload on pages; "" of contexts.
    title: str = ""
    #: Which time the percentiles are of: "service" (closed loads) or "response" (open ones).
    latency: str = "service"
    #: Of the iterations that ended well so far; None before the first.
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    lag_p99_s: float | None = None
    #: How often the start of a virtual user failed so far.
    start_failures: int = 0
    #: State of a search; "" for other loads.
    search: str = ""
    #: The longest running iteration, its worker and duration, if it is some seconds; else "".
    longest: str = ""
    #: Iterations of workers that are silent or lost, in words: they are waited for; "" for none.
    awaited: str = ""
    #: None before there is load.
    recent: RecentProgress | None = None
    sla: tuple[CriterionState, ...] = ()
    #: The most frequent kinds of failure, and how many kinds there are.
    failures: tuple[FailureProgress, ...] = ()
    failure_kinds: int = 0
    rows: tuple[WorkerProgress, ...] = ()


def longest_words(note: Mapping[str, Any]) -> str:
    """Return "; longest: ..." and "; waits for ..." if a snapshot has them; "" without either.

    The first is its longest running iteration, the second are iterations of silent and lost
    workers. `note` is a `Snapshot` as a mapping.
    """
    longest, awaited = note.get("longest"), note.get("awaited")
    found = f"; longest: {longest}" if longest else ""
    return f"{found}; waits for {awaited}" if awaited else found


def age_words(note: Mapping[str, Any]) -> str:
    """Return the age of a note's figures as words, for displays that do not update.

    Figures older than `STALE_S` seconds are marked: the coordinator has written none since. `note`
    is the content of `status.json`.
    """
    age_s = max(0.0, time.time() - note["at"])
    stale = "; the coordinator has written none since" if age_s >= STALE_S else ""
    return f"figures of {age_s:.0f} s ago{stale}"


def contexts_at(what: str, done: int, planned: int, elapsed_s: float) -> Snapshot:
    """Return a snapshot on the progress of contexts, while there is no load.

    `what`: the phase to show, in words. `done` and `planned`: counts of its steps. The workload is
    -1.
    """
    return Snapshot(
        workload=-1,
        name="contexts",
        phase=what,
        elapsed_s=elapsed_s,
        planned=planned,
        settled=done,
        dropped=0,
        ok=done,
        failed=0,
        busy=0,
        workers=0,
        away="",
    )


def done_words(note: Mapping[str, Any]) -> str:
    """Return, as words, the count of iterations done, of the plan and dropped: "5 of 9 done".

    `note` is a `Snapshot` as a mapping. Dropped arrivals do not count as done.
    """
    # notes of older releases do not say what was dropped
    dropped, planned = note.get("dropped", 0), note["planned"]
    done = note["settled"] - dropped
    plan = f" of {count(planned)}" if planned is not None else ""
    return f"{count(done)}{plan} done" + (f", {count(dropped)} dropped" if dropped else "")


def left_words(note: Mapping[str, Any]) -> str:
    """Return the remaining time as words behind a comma: ", 5 min 03 s left"; "" if unknown.

    `note` is a `Snapshot` as a mapping.
    """
    left_s = note.get("left_s")
    if left_s is None:
        return ""
    minutes, seconds = divmod(math.ceil(left_s), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f", {hours} h {minutes:02} min left"
    return f", {minutes} min {seconds:02} s left" if minutes else f", {seconds} s left"


def worker_title(name: str, label: str) -> str:
    """Return a worker process as displays call it: "label (host:pid)", or its name alone."""
    return f"{label} ({name})" if label else name


class ProgressTrail:
    """Recent figures of a workload over the time of its load: points that are evenly spread."""

    def __init__(self) -> None:
        #: [elapsed_s, iterations per second, p50_s, p95_s]; None without an iteration.
        self.points: list[list[float | None]] = []
        self._every_s = 0.0

    def add(self, snapshot: Snapshot) -> None:
        """Append a snapshot's recent figures, if it has any and the last point is not too close.

        Beyond `TRAIL` points, every second one is deleted, and points are taken half as often.
        """
        recent = snapshot.recent
        if recent is None:
            return
        last_s = self.points[-1][0] if self.points else None
        if last_s is not None and snapshot.elapsed_s - last_s < self._every_s:
            return
        figures = (snapshot.elapsed_s, recent.rate, recent.p50_s, recent.p95_s)
        self.points.append([None if one is None else float(f"{one:.4g}") for one in figures])
        if len(self.points) > TRAIL:
            span_s = snapshot.elapsed_s - (self.points[0][0] or 0.0)
            self._every_s = 2 * span_s / len(self.points)
            del self.points[1::2]


class ProgressRecorder:
    """Passes each snapshot on to a display, and writes about one per second to `status.json`."""

    def __init__(self, progress: Callable[[Snapshot], None], directory: RunDirectory) -> None:
        self._progress = progress
        self._directory = directory
        self._written = 0.0
        self._failed = False
        #: By workload: the time and snapshot last shown.
        self._shown: dict[int, tuple[float, Snapshot]] = {}
        self._trails: dict[int, ProgressTrail] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        """Show a snapshot; also write it if `STATUS_S` seconds have passed since the last write.

        The first failed write is logged, none is raised.
        """
        self._progress(snapshot)
        now = time.monotonic()
        self._shown[snapshot.workload] = (now, snapshot)
        if now - self._written >= STATUS_S:
            self._written = now
            for at, shown in self._shown.values():
                if now - at < STATUS_S:
                    self._trails.setdefault(shown.workload, ProgressTrail()).add(shown)
            self._note(snapshot, now)

    def _note(self, snapshot: Snapshot, now: float) -> None:
        try:
            self._directory.write("status.json", self._noted(snapshot, now), sync=False)
        except StorageError as error:
            # a run must not end because its progress cannot be saved
            if not self._failed:
                LOG.warning("no progress for `status`: %s", error)
            self._failed = True

    def _noted(self, snapshot: Snapshot, now: float) -> dict[str, Any]:
        """Return the content of `status.json`: a snapshot with `at`, `on_disk`, `trail`, `beside`.

        `at`: the time. `on_disk`: bytes of journal and blocks. `trail`: points of a
        `ProgressTrail`. `beside`: list of the latest snapshots of other workloads, with their
        trails, that are younger than `STATUS_S` seconds at `now`.
        """
        beside = [
            self._with_trail(other)
            for number, (at, other) in sorted(self._shown.items())
            if number != snapshot.workload and now - at < STATUS_S
        ]
        return {
            **self._with_trail(snapshot),
            "at": time.time(),
            "beside": beside,
            "on_disk": self._directory.sizes,
        }

    def _with_trail(self, snapshot: Snapshot) -> dict[str, Any]:
        trail = self._trails.get(snapshot.workload)
        return {**dataclasses.asdict(snapshot), "trail": trail.points if trail else []}
