"""The workers of a run: offers to free workers, and the state of workers by their heartbeats.

An offer asks a worker to join the run, or to follow its new coordinator; the worker decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from osbench.common.errors import FleetError, OlderCopy, StoreUnreachable, Superseded
from osbench.common.machine.clock_steps import ClockSteps
from osbench.common.ports import chance as secrets
from osbench.common.ports import clock as time
from osbench.common.protocol.messages import Heartbeat, Offer
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION, HeartbeatReader
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.worker import WorkerHandle, WorkerState
from osbench.coordinator.load.fleet.worker_request import (
    Shortage,
    WorkerRequest,
    not_joined,
    other_version,
    processes,
)
from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares

#: A poll that comes later than this after the previous one counts as this long: a coordinator
#: that slept declares no worker lost.
LONGEST_POLL_S = 1.0
#: A wait for workers that is longer than this is reported: workers of local mode come in less.
SILENT_S = 2.0
#: Longest wait of a run with enough workers for others that it has invited, seconds.
STRAGGLERS_S = 1.5
#: Between two looks while workers are gathered, seconds.
GATHER_S = 0.05
#: The same in local mode, whose Redis has no other clients.
LOCAL_GATHER_S = 0.005


class FleetPort(Protocol):
    """Interface of the pool to the rest of a run: journal entries, and writes to Redis."""

    def join(self, mid: str, incarnation: str) -> Membership:
        """Return the membership with the id `mid`; write a new one to the journal first."""

    def miss(self, membership: Membership, blocks: Sequence[int]) -> None:
        """Write to the journal that acknowledged blocks are not on disk, and log a warning.

        Workers have discarded them, so their iterations are lost.
        """

    def offer(self, offers: Iterable[Offer]) -> None:
        """Sign offers and write them to Redis; they expire soon. Raises StoreUnreachable."""

    def forget(self, incarnation: str) -> None:
        """Delete all keys of a worker process from Redis: heartbeat, offer and queue.

        Raises StoreUnreachable.
        """


@dataclass(frozen=True, kw_only=True)
class _Invitation:
    """An offer that a worker has not followed yet: to join the run, or its new coordinator."""

    challenge: str
    session: str
    membership: str

    @property
    def takes_over(self) -> bool:
        return self.session != self.membership


class _Wait:
    """Times of one wait for workers: since its begin, and since there are enough workers.

    Both start again after an outage of Redis.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._met: float | None = None
        self._away: float | None = None

    def away_s(self) -> float:
        """Return the seconds since Redis became unreachable, 0.0 in the first call of an outage."""
        now = time.monotonic()
        if self._away is None:
            self._away = now
        return now - self._away

    def look(self, *, met: bool) -> tuple[float, float]:
        """Return the seconds waited, and the seconds for which there have been enough workers.

        `met`: there are enough now; if not, the second number is 0.0. To be called while Redis is
        reachable. After an outage both numbers start again from 0.
        """
        now = time.monotonic()
        if self._away is not None:
            # heartbeats may be lost with other data of Redis
            self._begun, self._away, self._met = now, None, None
        if not met:
            self._met = None
        elif self._met is None:
            self._met = now
        return now - self._begun, 0.0 if self._met is None else now - self._met


class WorkerPool:
    """The workers of one run: invites free ones, and follows the heartbeats of all that joined.

    Polls only when `poll` or `gather` is called; has no thread.
    """

    def __init__(
        self,
        port: FleetPort,
        heartbeats: HeartbeatReader,
        run_id: str,
        zones: ZoneShares = NO_ZONES,
    ) -> None:
        """`zones`: of which it takes workers, by their shares."""
        self._port = port
        self._heartbeats = heartbeats
        self._run = run_id
        #: Counts the coordinator processes of the run; set when the run is opened.
        self.epoch = 1
        #: By membership; a worker that is lost or has left stays.
        self.workers: dict[str, WorkerHandle] = {}
        self._zones = zones
        #: By incarnation.
        self._invited: dict[str, _Invitation] = {}
        #: The membership that was offered to each worker last, by incarnation.
        self._asked: dict[str, str] = {}
        self._free: list[Heartbeat] = []
        #: Workers of another version of osbench: they are never invited.
        self._strangers: list[Heartbeat] = []
        #: When workers with another key last got an offer, monotonic.
        self._told_at = 0.0
        #: Live workers of an earlier coordinator that do not follow this one yet.
        self.hesitant = 0
        #: Runs that hold other workers, when workers were last read.
        self._holders: set[str] = set()
        self._polled_at = time.monotonic()
        #: Of this host's wall clock, since the run began.
        self.clock_steps = ClockSteps()
        #: Seconds of successful polls so far, at most `LONGEST_POLL_S` for each: waits count by it,
        #: so that they do not end because this process slept or Redis was unreachable.
        self.watched_s = 0.0

    @property
    def refused(self) -> int:
        """Number of heartbeats that the reader of heartbeats could not verify so far."""
        return self._heartbeats.refused

    @property
    def present(self) -> list[WorkerHandle]:
        """The live workers that serve under this coordinator, also workers that are leaving."""
        return [worker for worker in self.workers.values() if worker.present and worker.session]

    @property
    def unheard(self) -> list[WorkerHandle]:
        """The live workers of an earlier coordinator that have not followed this one yet.

        Workers whose process has left the run are not included.
        """
        workers = self.workers.values()
        return [one for one in workers if one.present and not one.session and not one.gone]

    def serving(self, workload: int) -> list[WorkerHandle]:
        """Return the live workers of this coordinator whose workload has this number."""
        return [worker for worker in self.present if worker.workload == workload]

    @property
    def idle(self) -> list[WorkerHandle]:
        """The live workers that have joined, serve no workload, and are not leaving."""
        return [worker for worker in self.present if worker.workload < 0 and not worker.leaving]

    @property
    def newcomers(self) -> list[WorkerHandle]:
        """The idle workers that have served no workload of the run yet."""
        return [worker for worker in self.idle if not worker.served]

    @property
    def staying(self) -> list[WorkerHandle]:
        """The live workers of this coordinator that are not leaving."""
        return [worker for worker in self.present if not worker.leaving]

    @property
    def invited(self) -> dict[str, str]:
        """Ids of memberships that were offered to workers which have not joined, by incarnation.

        An incarnation is the name of a worker process. Includes workers that have fallen silent
        since: they may have read the offer before.
        """
        return {name: mid for name, mid in self._asked.items() if mid not in self.workers}

    # gathering

    def gather(
        self,
        request: WorkerRequest,
        check: Callable[[], None],
        say: Callable[[str], None],
        patience_s: float = 0.0,
    ) -> None:
        """Invite free workers and wait until the request is met, at most `request.wait_s` seconds.

        The wait begins again after an outage of Redis. With enough workers, waits up to
        `STRAGGLERS_S` more for other invited workers. `check` is called in each pass and may raise.
        `say` gets messages on long waits, unless the request is private, and on workers that are
        not used.

        Raises FleetError if workers are lacking at the end, or no more can come, StoreUnreachable
        if Redis is unreachable for `patience_s` seconds, and other errors of `poll`.
        """
        self._zones = request.zones
        wait = _Wait()
        said = ""
        while True:
            check()
            try:
                self.poll()
                self.invite(None if request.count is None else request.count - len(self.staying))
                self._tell_unverified()
            except StoreUnreachable:
                if wait.away_s() >= patience_s:
                    raise
                time.sleep(GATHER_S)
                continue
            shortage = self._shortage(request)
            waited_s, met_s = wait.look(met=shortage.is_met)
            # others that were invited may be about to join; some of them may have died
            if shortage.is_met and (not self._invited or met_s > STRAGGLERS_S):
                self._tell_end(say, shortage.got, waited_s if said else None)
                return
            if not shortage.is_met and (shortage.is_final or waited_s >= request.wait_s):
                raise FleetError(shortage.refusal())
            line = shortage.waiting()
            if waited_s >= SILENT_S and line != said and not request.private:
                said = line
                say(line)
            time.sleep(LOCAL_GATHER_S if request.private else GATHER_S)

    def _tell_end(self, say: Callable[[str], None], got: int, waited_s: float | None) -> None:
        """Report the end of the wait by `say`.

        Reports the number of workers and `waited_s` unless that is None (no wait was reported);
        else workers of another version, if any. Then reports workers that were invited and have not
        joined.
        """
        if waited_s is not None:
            say(f"{processes(got)} after {waited_s:.0f} s: going on")
        elif self._strangers:
            say(other_version(self._strangers))
        if self._invited:
            say(not_joined(self._invited))

    def _shortage(self, request: WorkerRequest) -> Shortage:
        joined = self.staying
        taken, free = [one.beat.label for one in joined], [beat.label for beat in self._free]
        return Shortage(
            request=request,
            got=len(joined),
            threads=sum(worker.beat.capacity for worker in joined),
            coroutines=sum(worker.beat.coroutines for worker in joined),
            holders=self._holders,
            unverified=self._heartbeats.unverified,
            strangers=self._strangers,
            absent=request.zones.absent(taken),
            unseen=request.zones.absent([*taken, *free]),
            unfit=sum(not request.zones.admits(label) for label in free),
        )

    def invite(self, count: int | None) -> None:
        """Offer the run to free workers, to `count` of them or, if that is None, to all.

        Free are workers that were idle in the last poll. Workers that have an open offer count
        towards `count`, and get it again, since offers expire. With 0 or less no further worker is
        invited. Workers are taken in the order of `ZoneShares.order`. Raises StoreUnreachable.
        """
        free = {beat.incarnation: beat for beat in self._free}
        self._invited = {
            name: one
            for name, one in self._invited.items()
            # workers of an earlier coordinator are asked until they report that they are free
            if (free[name].challenge == one.challenge if name in free else one.takes_over)
        }
        asked = sum(1 for name in self._invited if name in free)
        lacking = len(free) if count is None else max(0, count)
        taken = [worker.beat.label for worker in self.staying]
        taken += [free[name].label for name in self._invited if name in free]
        fresh = [name for name in free if name not in self._invited]
        labels = [free[name].label for name in fresh]
        # places for workers of zones that have none yet
        lacking -= 0 if count is None else len(self._zones.absent([*taken, *labels]))
        for position in self._zones.order(labels, taken):
            name, beat = fresh[position], free[fresh[position]]
            if asked < lacking:
                asked += 1
                session = self._asked[name] = secrets.token_hex(16)
                self._invited[name] = _Invitation(
                    challenge=beat.challenge, session=session, membership=session
                )
        offers = [
            self._offer(free[name], one) for name, one in self._invited.items() if name in free
        ]
        if offers:
            self._port.offer(offers)

    def _tell_unverified(self) -> None:
        """Write offers without a challenge to workers whose heartbeats cannot be verified.

        They cannot follow such an offer, and log that their key differs. At most once per
        `SILENT_S`. Raises StoreUnreachable.
        """
        now = time.monotonic()
        if now - self._told_at < SILENT_S:
            return
        self._told_at = now
        names = self._heartbeats.unverified_names
        if names:
            self._port.offer([self._hint(name) for name in names])

    def _hint(self, incarnation: str) -> Offer:
        return Offer(
            run=self._run,
            epoch=self.epoch,
            incarnation=incarnation,
            challenge="",
            session="",
            membership="",
        )

    def _offer(self, beat: Heartbeat, one: _Invitation) -> Offer:
        return Offer(
            run=self._run,
            epoch=self.epoch,
            incarnation=beat.incarnation,
            challenge=one.challenge,
            session=one.session,
            membership=one.membership,
        )

    def restore(self, membership: Membership) -> None:
        """Add a worker that is known only from the journal so far, with an invented heartbeat.

        The number of that heartbeat is 0. The worker is LEFT if all its blocks are on disk, LOST if
        the journal says so, else ACTIVE and silent.
        """
        host, _, rest = membership.incarnation.partition(".")
        beat = Heartbeat(
            incarnation=membership.incarnation,
            beat=0,
            host=host,
            pid=int(rest.partition(".")[0] or 0) if rest.partition(".")[0].isdecimal() else 0,
            label="",
            version="",
            capacity=0,
            coroutines=0,
            state="silent",
            membership=membership.mid,
        )
        handle = self.workers[membership.mid] = WorkerHandle(beat, membership)
        if membership.whole:
            handle.mark_left()
        elif membership.lost:
            # if it sends heartbeats again, that is journalled before it goes on
            handle.declare_lost()

    # polling

    def poll(self, *, relist: bool = True) -> None:
        """Read heartbeats; update all workers, and add workers that have joined.

        Also finds free workers for `invite`. If not `relist`, names of new workers are not looked
        up. Raises StoreUnreachable, StoreError, StorageError: then no worker's silence grows.
        Raises Superseded if another coordinator has resumed this run, OlderCopy if a worker has
        taken batches that this journal does not have.
        """
        self.clock_steps.look()
        beats = {beat.incarnation: beat for beat in self._heartbeats.present(relist=relist)}
        now = time.monotonic()
        since_s = min(now - self._polled_at, LONGEST_POLL_S)
        self._polled_at = now
        self.watched_s += since_s
        self._free, self._strangers, self._holders = [], [], set()
        self.hesitant = 0
        for beat in beats.values():
            if beat.run == self._run:
                self._follow(beat, now)
            elif beat.run:
                self._holders.add(beat.run)
            elif beat.state == OTHER_VERSION:
                self._strangers.append(beat)
            elif beat.state == "idle":
                self._free.append(beat)
        for worker in self.workers.values():
            if worker.state is not WorkerState.LEFT:
                worker.hear(beats.get(worker.incarnation), since_s, now)

    def _follow(self, beat: Heartbeat, now: float) -> None:
        """Apply a heartbeat of this run.

        Adds a new worker to the pool and the journal. Offers a worker of an earlier coordinator to
        follow this one, and sets the session of a worker that has followed. Journals blocks that
        the worker knows as acknowledged and that are not on disk. Raises Superseded, OlderCopy,
        StorageError, StoreUnreachable.
        """
        if beat.epoch > self.epoch:
            raise Superseded(
                f"another coordinator has resumed run {self._run} (it is number {beat.epoch}, "
                f"this one number {self.epoch}): this one ends"
            )
        worker = self.workers.get(beat.membership)
        if worker is None:
            membership = self._port.join(beat.membership, beat.incarnation)
            worker = self.workers[beat.membership] = WorkerHandle(beat, membership)
        granted = worker.membership.seq
        if beat.got > granted:
            raise OlderCopy(
                f"the journal of run {self._run} has {granted} batches of worker {worker.name}, "
                f"which has taken {beat.got}: it is an older copy, and later iterations "
                "could be started twice"
            )
        missing = worker.membership.missing(beat.delivered)
        if missing:
            self._port.miss(worker.membership, missing)
        if beat.epoch < self.epoch:
            self.hesitant += 1
            self._take_over(beat)
        elif worker.session != beat.session and beat.beat >= worker.beat.beat:
            # only this process makes offers of this epoch
            self._invited.pop(beat.incarnation, None)
            worker.session = beat.session
            worker.beat = beat
            worker.signed(now)

    def _take_over(self, beat: Heartbeat) -> None:
        """Write an offer to a worker of an earlier coordinator of this run to follow this one.

        The same offer is written again until the worker's challenge changes. Raises
        StoreUnreachable.
        """
        one = self._invited.get(beat.incarnation)
        if one is None or one.challenge != beat.challenge:
            one = self._invited[beat.incarnation] = _Invitation(
                challenge=beat.challenge,
                session=secrets.token_hex(16),
                membership=beat.membership,
            )
        self._port.offer([self._offer(beat, one)])

    def forget(self, incarnation: str) -> None:
        """Delete all keys of a worker process from Redis: heartbeat, offer and queue.

        The pool itself does not change. Raises StoreUnreachable.
        """
        self._port.forget(incarnation)
