"""State of one membership (a worker process's part in a run), as the coordinator sees it. No I/O.

States: ACTIVE <-> LEAVING, either <-> LOST, and any -> LEFT. `hear` takes the heartbeat of a poll;
`run/failover.py` declares workers lost and takes them back.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

from osbench.common.protocol import timers
from osbench.common.protocol.messages import Heartbeat
from osbench.coordinator.load.fleet.membership import Membership

#: Memory of the estimate of a worker's speed, seconds.
RATE_MEMORY_S = 1.0
#: Factor by which the stock of a worker may grow with each report of its speed.
GROWTH = 16
#: A worker that has run dry may have this much work, in seconds at its last reported speed.
DRY_S = 0.25


class WorkerState(enum.Enum):
    """States of a membership (one stay of a worker process in a run) in the coordinator."""

    #: Can have work.
    ACTIVE = enum.auto()
    #: Takes no more work, see `LeaveReason`.
    LEAVING = enum.auto()
    #: Silent for long: its lease is over. Its next heartbeat makes it a member again.
    LOST = enum.auto()
    #: All of its blocks up to the final one are on disk: it holds nothing.
    LEFT = enum.auto()


class LeaveReason(enum.Enum):
    """Reasons why a worker takes no more work.

    The values of DRAINING and STUCK are states that a heartbeat reports.
    """

    DRAINING = "draining"
    #: Too many of its threads run on after their iteration timed out.
    STUCK = "stuck"
    #: Some of its results cannot be read, so that its iterations are unknown.
    UNREADABLE = "sent results that cannot be read"
    #: It sends heartbeats, but messages of the broker do not reach it.
    UNREACHABLE = "took none of its batches"
    #: The process is in another run, in none, or gone.
    GONE = "left"


class Readiness(enum.Enum):
    """Preparation of a worker for the workload that it serves: not yet done, done, or failed."""

    PENDING = enum.auto()
    READY = enum.auto()
    FAILED = enum.auto()


_HEARD = {WorkerState.ACTIVE, WorkerState.LEAVING}
#: Reasons that no heartbeat takes back.
LASTING = {LeaveReason.UNREADABLE, LeaveReason.UNREACHABLE}
_LEAVES = {reason.value: reason for reason in (LeaveReason.DRAINING, LeaveReason.STUCK)}


#: Generation, stop time (seconds after t0), pace and its part of a control record.
Granted = tuple[int, float | None, float, tuple[int, ...]]
#: `WorkerHandle.granted` before there is a control record.
NOT_GRANTED: Granted = (-1, None, 0.0, ())


def most_users(beat: Heartbeat, *, coroutines: bool) -> int:
    """Return the most virtual users that a worker process can have, by its heartbeat.

    Coroutines, or threads if `coroutines` is False.
    """
    return beat.coroutines if coroutines else beat.capacity


@dataclass(slots=True, eq=False)
class WorkerHandle:
    """Mutable state of one membership (one stay of a worker process in a run) in the coordinator.

    Equal only to itself.
    """

    beat: Heartbeat
    membership: Membership
    #: The session under this coordinator; "" before it has followed an offer of it.
    session: str = ""
    state: WorkerState = WorkerState.ACTIVE
    leave_reason: LeaveReason | None = None
    #: Seconds of successful polls without a sign of life.
    silence_s: float = 0.0
    #: When it last gave a sign of life, monotonic seconds; 0 if never.
    alive_at: float = 0.0
    #: Number of the workload it serves, and whether its virtual users are coroutines.
    workload: int = -1
    uses_coroutines: bool = False
    readiness: Readiness = Readiness.PENDING
    #: It has served a workload under this coordinator.
    served: bool = False
    #: Virtual users it should have, has been assigned, and may still have in use.
    target: int = 0
    user_limit: int = 0
    held: int = 0
    #: How many of its numbers of virtual users it may use; None for all. It ends the other users.
    numbers: int | None = None
    generation: int = 0
    #: Most iterations that it may start per second; 0 for no limit.
    pace: float = 0.0
    pace_part: tuple[int, ...] = ()
    #: Generation, stop time, pace and its part of the control record last written.
    granted: Granted = NOT_GRANTED
    #: Batches that it is to give back.
    recall: set[int] = field(default_factory=set)
    #: Some of them are not in a control record yet.
    untold: bool = False
    #: Iterations per second, estimated; 0 if unknown.
    rate: float = 0.0
    #: Most iterations that it may have in hand; grows while its speed is not known well. None
    #: before anything is known.
    stock: int | None = None
    #: Time at which its first batches were granted, seconds after t0.
    blind_s: float | None = None
    #: Seconds by which turns of the coordinator last longer than they should, lately.
    turn_s: float = 0.0
    #: `Heartbeat.clock_set_s` of its first heartbeat.
    clock_set_s: list[float] | None = None

    @property
    def incarnation(self) -> str:
        """Name of the worker process, unique for each start: host, pid and random bits."""
        return self.beat.incarnation

    @property
    def name(self) -> str:
        """Key of the membership in ledger, statistics and report.

        It is the incarnation, with "+2", "+3" for later memberships of one process.
        """
        return self.membership.name

    @property
    def mid(self) -> str:
        """Id of the membership: that of its first session."""
        return self.membership.mid

    @property
    def present(self) -> bool:
        """Return whether the state is ACTIVE or LEAVING."""
        return self.state in _HEARD

    @property
    def leaving(self) -> bool:
        """Return whether the worker is present, and has a reason to take no more work."""
        return self.present and self.leave_reason is not None

    @property
    def returns_numbers(self) -> bool:
        """Return whether numbers of users come back from the worker: it stays, or drains."""
        return self.leave_reason in (None, LeaveReason.DRAINING)

    @property
    def gone(self) -> bool:
        """Return whether the worker process has left, by heartbeats of another run, or of none."""
        return self.leave_reason is LeaveReason.GONE

    @property
    def ready(self) -> bool:
        """Return whether the worker has prepared the workload that it serves."""
        return self.readiness is Readiness.READY

    @property
    def has_users(self) -> bool:
        """Return whether the worker can have virtual users: it is ACTIVE and has prepared."""
        return self.state is WorkerState.ACTIVE and self.ready

    @property
    def capacity(self) -> int:
        """Most virtual users that the worker can have, of the kind that its workload uses.

        0 if it is not ACTIVE or has not prepared.
        """
        return most_users(self.beat, coroutines=self.uses_coroutines) if self.has_users else 0

    @property
    def holds_work(self) -> bool:
        """Return whether the worker has iterations, or results that are not on disk.

        By its last heartbeat: busy users, queued iterations, batches not taken, or blocks not
        acknowledged.
        """
        beat, known = self.beat, self.membership
        undelivered = beat.got < known.seq or beat.made > known.acknowledged
        return bool(beat.busy or beat.queued or undelivered)

    @property
    def undelivered(self) -> int:
        """Number of result blocks that the worker has made and that are not on disk."""
        known = self.membership
        here = sum(1 for number in known.have if number <= self.beat.made)
        return max(0, self.beat.made - known.acknowledged - here)

    @property
    def clock_moved_s(self) -> tuple[float, float]:
        """Seconds by which its host's wall clock was set (back, forward) since its first heartbeat.

        (0.0, 0.0) before the first heartbeat.
        """
        if self.clock_set_s is None:
            return 0.0, 0.0
        back, forward = self.clock_set_s
        return self.beat.clock_set_s[0] - back, self.beat.clock_set_s[1] - forward

    def age_s(self, now: float) -> float:
        """Return the seconds from the worker's last sign of life until `now`, monotonic seconds.

        A large number if there was none.
        """
        return now - self.alive_at

    def takes_work(self, now: float) -> bool:
        """Return whether the worker can be granted work at `now`, monotonic seconds.

        It must be ACTIVE and ready, with a sign of life less than `FRESH_S` old. It must have
        neither a recall of batches nor a final block: work granted after that would never come
        back.
        """
        if self.recall or self.membership.final:
            return False
        return self.has_users and self.age_s(now) < timers.FRESH_S + self.turn_s

    # transitions

    def hear(self, beat: Heartbeat | None, since_s: float, now: float) -> bool:
        """Apply the heartbeat that a poll of Redis found for this worker process, or None.

        Returns whether the heartbeat is new and of this coordinator's session. Without a new one,
        or if it is of another membership or none, `silence_s` grows by `since_s`, the seconds since
        the previous poll. An ACTIVE worker becomes LEAVING if its process has left this membership,
        drains, or is stuck; a later heartbeat of its session takes back the first. Once it uses its
        present limit, `held` becomes that. `now` is in monotonic seconds.
        """
        if beat is None or beat.beat <= self.beat.beat:
            self.silence_s += since_s
            return False
        if beat.membership != self.mid:
            self.silence_s += since_s
            self._leave(LeaveReason.GONE)
            return False
        self.beat = beat
        if self.clock_set_s is None:
            self.clock_set_s = beat.clock_set_s
        if beat.session != self.session:
            # under an earlier coordinator: it is asked to follow this one
            return False
        self.signed(now)
        leaves = _LEAVES.get(beat.state)
        if leaves is not None:
            self._leave(leaves)
        elif self.leave_reason is LeaveReason.GONE:
            # heartbeats that somebody put back had caused it
            self.leave_reason = None
            self.state = WorkerState.ACTIVE if self.state is WorkerState.LEAVING else self.state
        if self.follows:
            self.held = self.user_limit
        return True

    @property
    def follows(self) -> bool:
        """Return whether the worker uses its present limit, and all users beyond it have ended."""
        return self.beat.generation == self.generation and not self.beat.surplus

    def signed(self, now: float) -> None:
        """Note a sign of life (a new heartbeat or result block) at `now`, monotonic seconds.

        Sets `silence_s` to 0.
        """
        self.silence_s = 0.0
        self.alive_at = now

    def _leave(self, reason: LeaveReason) -> None:
        if self.leave_reason not in LASTING:
            self.leave_reason = reason
        if self.state is WorkerState.ACTIVE:
            self.state = WorkerState.LEAVING

    def unreadable(self) -> None:
        """Make the worker take no more work for good, because its results cannot be read.

        An ACTIVE worker becomes LEAVING.
        """
        self._leave(LeaveReason.UNREADABLE)

    def unreachable(self) -> None:
        """Make the worker take no more work for good, because its batches do not arrive.

        An ACTIVE worker becomes LEAVING.
        """
        self._leave(LeaveReason.UNREACHABLE)

    def declare_lost(self) -> None:
        """Mark a present worker as LOST, and set its virtual users to 0.

        Does nothing if the worker is LOST or LEFT. The caller has waited until the lease has ended,
        the time in which a silent worker may start iterations.
        """
        if self.present:
            self.state = WorkerState.LOST
            self.target = self.user_limit = self.held = 0
            self.generation += 1

    def found(self) -> None:
        """Make a LOST worker ACTIVE again, or LEAVING if it had a reason to leave.

        For a worker that sends heartbeats again; does nothing in other states.
        """
        if self.state is WorkerState.LOST:
            self.state = WorkerState.LEAVING if self.leave_reason else WorkerState.ACTIVE

    def mark_left(self) -> None:
        """Mark the worker as LEFT, and set its virtual users to 0.

        The caller knows that all its blocks are on disk, the final one too.
        """
        self.state = WorkerState.LEFT
        self.target = self.user_limit = self.held = 0

    # workloads

    def begin(self, workload: int, *, coroutines: bool = False) -> None:
        """Reset the state for a new workload: not prepared, no users, speed unknown.

        `workload` is its number; its virtual users are `coroutines` or threads.
        """
        self.workload, self.uses_coroutines = workload, coroutines
        self.served = True
        self.readiness = Readiness.PENDING
        self.generation, self.numbers = 0, None
        self.granted, self.pace, self.pace_part = NOT_GRANTED, 0.0, ()
        self.target = self.user_limit = self.held = 0
        self.rate = 0.0
        self.stock = self.blind_s = None

    def go_on(self, workload: int, *, coroutines: bool = False) -> bool:
        """Continue a workload that the worker has prepared under an earlier coordinator.

        Returns True and takes over the worker's users as its heartbeat reports them. Returns False
        if it has not prepared this workload: then the state is reset as by `begin`.
        """
        self.begin(workload, coroutines=coroutines)
        if self.beat.prepared != workload or self.beat.problem:
            return False
        self.readiness = Readiness.READY
        # every later change of its limit has another number than the numbers it knows
        self.generation = self.beat.generation
        # its users start granted iterations as soon as its heartbeat is acknowledged
        self.user_limit = self.beat.user_limit
        self.held = self.beat.user_limit + self.beat.surplus
        return True

    def room(self) -> int:
        """Return the most iterations that the worker may have, running and queued.

        That is `stock`, and at least `STOCK_PER_USER` per user. If nothing is known of its speed
        (`stock` is None) it is `BLIND_PER_USER` per user.
        """
        if self.stock is None:
            return timers.BLIND_PER_USER * self.user_limit
        return max(timers.STOCK_PER_USER * self.user_limit, self.stock)

    @property
    def trip_s(self) -> float:
        """Estimated seconds of a round trip from the worker to Redis; at most `TRIP_MOST_S`.

        Twice the uncertainty of its clock, which comes from its round trips.
        """
        # half of the shortest trip is the uncertainty of its clock
        return min(2 * max(0.0, self.beat.uncertainty_s), timers.TRIP_MOST_S)

    @property
    def trips_s(self) -> float:
        """Estimated seconds from the end of an iteration until a batch that replaces it arrives.

        That is `TRIPS` round trips to Redis, and two turns of the coordinator beyond the usual.
        """
        return timers.TRIPS * self.trip_s + 2 * self.turn_s

    @property
    def known(self) -> bool:
        """Return whether the worker's speed is known well.

        True once `stock`, which may grow only by steps at first, has reached the amount that the
        measured speed allows.
        """
        return self.stock is not None and self.stock >= self._full_stock()

    @property
    def scant(self) -> bool:
        """Return whether the measured speed allows less than two iterations per user in stock.

        Iterations are long then. If they become short, such a stock is soon used up.
        """
        return (
            self.stock is not None and self._full_stock() < timers.STOCK_PER_USER * self.user_limit
        )

    def _full_stock(self) -> int:
        return int(self.rate * (timers.STOCK_S + self.trips_s))

    def slow(self) -> None:
        """Set an unknown stock to 0, so that `room` returns two iterations per user.

        A known stock stays.
        """
        self.stock = self.stock or 0

    def measured(self, rows: int, busy_s: float, *, dry: bool = False) -> None:
        """Update `rate` and `stock` by a report: `rows` iterations took `busy_s` user-seconds.

        `rows` = 0 changes nothing. The rate is iterations per second if all users have work,
        whenever blocks arrive. It is averaged over about `RATE_MEMORY_S` seconds. The stock grows
        to at most `GROWTH` times `room` per report.

        `dry`: some users had nothing to do. Then the rate rises to the measured one at once, and
        the stock may be `DRY_S` seconds of work: the memory of slow iterations, such as the first
        of a service, would make the worker wait again and again.
        """
        if not rows:
            return
        wall_s = max(busy_s, 1e-9) / max(1, self.user_limit)
        weight = 1.0 if not self.rate else 1.0 - math.exp(-wall_s / RATE_MEMORY_S)
        self.rate += weight * (rows / wall_s - self.rate)
        most = GROWTH * self.room()
        if dry:
            self.rate = max(self.rate, rows / wall_s)
            # until the report after the next one, so that it does not run dry for each of them
            most = max(most, int(self.rate * DRY_S))
        self.stock = min(most, self._full_stock())
