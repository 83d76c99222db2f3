"""A worker process as the coordinator of a run sees it: one state machine, no I/O.

ACTIVE -> LEAVING -> FENCING -> FENCED -> RECLAIMED, where LEAVING may be skipped. `hear` enters
LEAVING; `run/failover.py` drives the other transitions.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from osbench.common.protocol.messages import Heartbeat

#: Memory of the estimate of a worker's speed, seconds.
RATE_MEMORY_S = 1.0


class WorkerState(enum.Enum):
    """How far a worker is on its way out of a run."""

    #: Can have work.
    ACTIVE = enum.auto()
    #: Takes no more work, see `LeaveReason`.
    LEAVING = enum.auto()
    #: Declared lost; its fence is in the result stream and was not read yet.
    FENCING = enum.auto()
    #: Its fence was read: results that follow are late or stale. Its batches are still its own.
    FENCED = enum.auto()
    #: Its batches were taken away and its queue deleted.
    RECLAIMED = enum.auto()


class LeaveReason(enum.Enum):
    """Why a worker takes no more work; the values are the states of its heartbeat."""

    DRAINING = "draining"
    #: Too many of its threads run on after their iteration timed out.
    STUCK = "stuck"


class LossReason(enum.Enum):
    """Why a worker is declared lost; the values begin the sentence that reports it."""

    SILENT = "fell silent"
    PROTOCOL_ERROR = "sent results that cannot be read"


class Readiness(enum.Enum):
    """Whether a worker has prepared the workload that it serves."""

    PENDING = enum.auto()
    READY = enum.auto()
    FAILED = enum.auto()


_NEXT = {
    WorkerState.ACTIVE: {WorkerState.LEAVING, WorkerState.FENCING},
    WorkerState.LEAVING: {WorkerState.FENCING},
    WorkerState.FENCING: {WorkerState.FENCED},
    WorkerState.FENCED: {WorkerState.RECLAIMED},
    WorkerState.RECLAIMED: set[WorkerState](),
}
_HEARD = {WorkerState.ACTIVE, WorkerState.LEAVING}
_LEAVES = {reason.value: reason for reason in LeaveReason}


@dataclass(slots=True, eq=False)
class WorkerHandle:
    """Mutable: one object per worker and run. Equal only to itself."""

    beat: Heartbeat
    state: WorkerState = WorkerState.ACTIVE
    leave_reason: LeaveReason | None = None
    #: Why it is lost, or is to be declared lost.
    loss_reason: LossReason | None = None
    #: Seconds of successful polls in which the beat did not change.
    silence_s: float = 0.0
    #: Seconds for which its heartbeats have said that it runs nothing and has nothing claimed.
    idle_s: float = 0.0
    #: Number of the workload it serves.
    workload: int = -1
    readiness: Readiness = Readiness.PENDING
    #: Virtual users it should have, has been assigned, and may still have in use.
    target: int = 0
    share: int = 0
    held: int = 0
    generation: int = 0
    #: Virtual users it had when its fence was read.
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
    def present(self) -> bool:
        """Its results count and its users may be busy."""
        return self.state not in (WorkerState.FENCED, WorkerState.RECLAIMED)

    @property
    def leaving(self) -> bool:
        """It takes no more work of its own accord."""
        return self.present and self.leave_reason is not None

    @property
    def ready(self) -> bool:
        """It has prepared the workload it serves."""
        return self.readiness is Readiness.READY

    @property
    def has_users(self) -> bool:
        """It can have virtual users; those of one that is being fenced still count."""
        return self.present and self.ready and self.leave_reason is None

    @property
    def takes_work(self) -> bool:
        """It can be sent batches."""
        return self.has_users and self.state is WorkerState.ACTIVE

    @property
    def capacity(self) -> int:
        """Virtual users it can have; none where it cannot have users."""
        return self.beat.capacity if self.has_users else 0

    # transitions

    def hear(self, beat: Heartbeat | None, since_s: float) -> None:
        """A poll that reached Redis, `since_s` after the previous one, found this heartbeat."""
        if beat is None or beat.beat <= self.beat.beat:
            self.silence_s += since_s
            return
        self.silence_s = 0.0
        self.idle_s = 0.0 if beat.busy or beat.queued else self.idle_s + since_s
        self.beat = beat
        leaves = _LEAVES.get(beat.state)
        if leaves is not None and self.state in _HEARD:
            self.leave_reason = leaves
            self.state = WorkerState.LEAVING
        if beat.generation == self.generation and beat.busy <= self.share:
            self.held = self.share

    def record_protocol_error(self) -> None:
        """Its results cannot be read: it is to be declared lost."""
        if self.state in _HEARD:
            self.loss_reason = LossReason.PROTOCOL_ERROR

    def due_loss(self, lost_after_s: float) -> LossReason | None:
        """Why it has to be declared lost now, or None."""
        if self.state not in _HEARD:
            return None
        if self.loss_reason is None and self.silence_s >= lost_after_s:
            return LossReason.SILENT
        return self.loss_reason

    def declare_lost(self, reason: LossReason) -> None:
        """Its fence was sent. Raises ValueError where it was declared lost before."""
        self._enter(WorkerState.FENCING)
        self.loss_reason = reason

    def fence_read(self) -> None:
        """Its fence was read: it has no users any more. Raises ValueError out of order."""
        self._enter(WorkerState.FENCED)
        self.lost_share = self.share
        self.target = self.share = self.held = 0

    def reclaimed(self) -> None:
        """Its batches were taken away. Raises ValueError out of order."""
        self._enter(WorkerState.RECLAIMED)

    def _enter(self, state: WorkerState) -> None:
        if state not in _NEXT[self.state]:
            raise ValueError(f"worker {self.incarnation}: {self.state.name} to {state.name}")
        self.state = state

    # workloads

    def begin(self, workload: int) -> None:
        """It serves a new workload."""
        self.workload = workload
        self.readiness = Readiness.PENDING
        self.idle_s = 0.0
        self.generation = 0
        self.granted = (-1, None)
        self.target = self.share = self.held = 0
        self.rate = 0.0

    def measured(self, rows: int, busy_s: float) -> None:
        """Results arrived, of `rows` iterations that took `busy_s` user-seconds.

        The rate is that of a worker with enough to do, whenever its blocks arrive: users divided
        by the length of an iteration.
        """
        if not rows:
            return
        wall_s = max(busy_s, 1e-9) / max(1, self.share)
        weight = 1.0 if not self.rate else 1.0 - math.exp(-wall_s / RATE_MEMORY_S)
        self.rate += weight * (rows / wall_s - self.rate)
