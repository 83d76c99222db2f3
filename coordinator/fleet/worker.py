"""A worker process as the coordinator of a run sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from osbench.common.protocol.messages import Heartbeat

#: Memory of the estimate of a worker's speed, seconds.
RATE_MEMORY_S = 1.0


@dataclass(slots=True, eq=False)
class Member:
    """Mutable: one object a worker and run. Equal only to itself."""

    beat: Heartbeat
    #: Seconds of successful polls in which the beat did not change.
    silence_s: float = 0.0
    #: Seconds for which its heartbeats have said that it runs nothing and has nothing claimed.
    idle_s: float = 0.0
    #: Sent results that cannot be read.
    garbled: bool = False
    #: Being given up, and given up.
    doomed: bool = False
    fenced: bool = False
    #: Wants no more work: it drains, or has too many stuck threads.
    leaving: bool = False
    #: Number of the workload it serves.
    workload: int = -1
    #: Could not prepare the current workload.
    unfit: bool = False
    #: Has the current workload prepared.
    ready: bool = False
    #: Virtual users it should have, was told to have, and may still have in use.
    target: int = 0
    share: int = 0
    held: int = 0
    generation: int = 0
    #: Virtual users it had when it was given up.
    lost_share: int = 0
    #: Generation and stop instant of the control record last written.
    granted: tuple[int, float | None] = (-1, None)
    #: Result blocks on disk.
    blocks: int = 0
    #: Version of the control record last written.
    version: int = 0
    #: Iterations a second, estimated; 0 is unknown.
    rate: float = 0.0

    @property
    def incarnation(self) -> str:
        """Its name."""
        return self.beat.incarnation

    @property
    def active(self) -> bool:
        """Can be given work."""
        return not (self.fenced or self.leaving or self.unfit)

    @property
    def capacity(self) -> int:
        """Virtual users it can have; none where it cannot be given work."""
        return self.beat.capacity if self.active and self.ready else 0

    @property
    def complaint(self) -> str:
        """Why it is given up, if it is."""
        if self.garbled:
            return "sent results that cannot be read"
        return f"was silent for {self.silence_s:.1f} s"

    def hear(self, beat: Heartbeat | None, since_s: float) -> None:
        """A poll that reached Redis, `since_s` after the one before, found this heartbeat."""
        if beat is None or beat.beat <= self.beat.beat:
            self.silence_s += since_s
            return
        self.silence_s = 0.0
        self.idle_s = 0.0 if beat.busy or beat.queued else self.idle_s + since_s
        self.beat = beat
        self.leaving = beat.state in ("draining", "stuck")
        if beat.generation == self.generation and beat.busy <= self.share:
            self.held = self.share

    def measured(self, rows: int, busy_s: float) -> None:
        """Results arrived, of iterations that took `busy_s` user-seconds.

        The rate is that of a worker with enough to do, whenever its blocks arrive: users divided
        by the length of an iteration.
        """
        if not rows:
            return
        wall_s = max(busy_s, 1e-9) / max(1, self.share)
        weight = 1.0 if not self.rate else 1.0 - math.exp(-wall_s / RATE_MEMORY_S)
        self.rate += weight * (rows / wall_s - self.rate)

    def begin(self, workload: int) -> None:
        """A new workload starts."""
        self.workload = workload
        self.ready = self.unfit = False
        self.idle_s = 0.0
        self.generation = 0
        self.granted = (-1, None)
        self.target = self.share = self.held = 0
        self.rate = 0.0
