"""The workers as a coordinator hears them: beats, offers, controls. Nothing of it is on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from property.protocol_model.messages_model import Beat, Control, Offer, SpecificationModel
from property.protocol_model.rules import FRESH_S, LEASE_S, LOST_AFTER_S

if TYPE_CHECKING:
    from property.protocol_model.coordinator_model import CoordinatorModel


@dataclass(slots=True)
class MemberModel:
    """What is known of a membership by its beats."""

    mid: int
    sid: int = 0
    #: The newest beat, when it was read, and the newest one that was answered.
    beat: int = 0
    beat_at: float = -9.0
    answered: int = 0
    got: int = 0
    idle: bool = True
    silence: float = 0.0
    #: Its worker shows this membership, under this coordinator process.
    here: bool = False
    lost: bool = False
    #: Batches whose unstarted numbers are wanted back.
    recall: set[int] = field(default_factory=set)
    #: Batches to be sent, and when one was last sent.
    unsent: list[int] = field(default_factory=list)
    sent_at: float = 0.0

    @property
    def heard(self) -> bool:
        """It is here, and not silent for too long."""
        return self.here and not self.lost


class FleetModel:
    """Hears and answers workers. Methods raise RedisAway."""

    def __init__(self, coordinator: CoordinatorModel) -> None:
        self._run = coordinator
        self._world, self._redis = coordinator.world, coordinator.world.redis
        self._version = coordinator.ledger.epoch << 32
        self._polled_at = coordinator.now()
        #: Challenge, new session and membership that were offered, by incarnation.
        self._offered: dict[str, tuple[int, int, int]] = {}
        self._members: dict[int, MemberModel] = {}

    def members(self) -> list[MemberModel]:
        """Those that the ledger knows."""
        return [self.member(mid) for mid in self._run.ledger.memberships]

    def member(self, mid: int) -> MemberModel:
        """A membership that the ledger knows."""
        return self._members.setdefault(mid, MemberModel(mid))

    def takers(self) -> list[MemberModel]:
        """Members that work can be granted to."""
        known, now = self._run.ledger.memberships, self._run.now()
        return [
            member
            for member in self.members()
            if member.heard
            and not member.recall
            and not (known[member.mid].ended and "ended" in self._world.rules)
            and now - member.beat_at < FRESH_S
        ]

    def poll(self) -> None:
        """Read all beats; who is silent ages only if Redis has answered."""
        beats = self._redis.get(*(("beat", name) for name in self._world.incarnations))
        now = self._run.now()
        since, self._polled_at = min(1.0, now - self._polled_at), now
        self._run.watched += since
        for member in self.members():
            member.silence += since
        crew = {
            self._run.ledger.memberships[member.mid].incarnation
            for member in self.members()
            if member.heard
        }
        for beat in beats:
            if isinstance(beat, Beat) and not self._run.superseded:
                self._hear(beat, crew)

    def answer(self) -> None:
        """Write a control for each beat that has none; restate now and then what may be gone."""
        plan, restate = self._run.plan, "restate" in self._world.rules
        if restate or (self._run.ledger.epoch == 1 and self._version & 0xFF < 9):
            digest = SpecificationModel(plan.run, plan.digest)
            self._redis.set(("specification", plan.run), digest)
        for member in self.members():
            due = member.beat > member.answered
            if due or (restate and self._world.chance.random() < 0.05):
                member.answered = member.beat
                self.control(member)

    def answer_soon(self, mid: int) -> None:
        """Have the next answers acknowledge what has come from a membership."""
        member = self.member(mid)
        member.answered = min(member.answered, member.beat - 1)

    def control(self, member: MemberModel, *, over: bool = False) -> None:
        """Write a control."""
        known = self._run.ledger.memberships[member.mid]
        if member.here:
            self._world.judge.may_start(member.mid)
        self._version += 1
        control = Control(
            run=self._run.plan.run,
            epoch=self._run.ledger.epoch,
            incarnation=known.incarnation,
            sid=member.sid,
            mid=member.mid,
            version=self._version,
            answers=member.beat,
            ack=self._acknowledged(member.mid),
            have=tuple(number for number in known.blocks if number > known.ack)[:8],
            recall=tuple(member.recall)[:16],
            willed=known.willed,
            over=over,
        )
        self._redis.set(("control", control.run, control.mid), control)

    def age(self) -> None:
        """Note who is lost: its lease is out, and it gets no answers until it is heard again."""
        for member in self.members():
            if member.heard and member.silence > LOST_AFTER_S:
                member.lost = True
                self._world.judge.may_not_start(member.mid)
                if self._run.plan.idempotent or "consent" not in self._world.rules:
                    self._run.record("again", member.mid)

    def _acknowledged(self, mid: int) -> int:
        known = self._run.ledger.memberships[mid]
        if "ack-gap" not in self._world.rules:
            return max(known.blocks, default=0)
        return known.ack

    def _hear(self, beat: Beat, crew: set[str]) -> None:
        run, ledger = self._run.plan.run, self._run.ledger
        mine = beat.run == run
        if mine and beat.epoch > ledger.epoch:
            self._run.superseded = True
            return
        if mine and beat.mid not in ledger.memberships:
            self._run.record("join", beat.mid, beat.incarnation)
        for other in self.members():
            same = ledger.memberships[other.mid].incarnation == beat.incarnation
            if same and beat.beat > other.beat and not (mine and other.mid == beat.mid):
                other.here = False
        if mine:
            self._note(beat)
        self._offer(beat, crew, mine=mine)

    def _note(self, beat: Beat) -> None:
        member = self.member(beat.mid)
        if beat.beat <= member.beat:
            return
        member.beat, member.beat_at, member.silence = beat.beat, self._run.now(), 0.0
        member.got, member.idle = beat.got, beat.idle
        if beat.epoch == self._run.ledger.epoch or "takeover" not in self._world.rules:
            member.here, member.lost, member.sid = True, False, beat.sid

    def _offer(self, beat: Beat, crew: set[str], *, mine: bool) -> None:
        """Ask a free worker in; ask a member of the process before into a new session."""
        run, ledger = self._run, self._run.ledger
        wanted = not run.stopping and len(crew) < run.plan.workers and bool(ledger.pool)
        free = beat.run == "" and wanted
        resumed = mine and beat.epoch < ledger.epoch and "takeover" in self._world.rules
        challenge, sid, mid = self._offered.get(beat.incarnation, (0, 0, 0))
        if (free or resumed) and challenge != beat.challenge:
            sid = self._world.nonce()
            challenge, mid = beat.challenge, beat.mid if mine else sid
            self._offered[beat.incarnation] = (challenge, sid, mid)
            crew.add(beat.incarnation)
        if challenge == beat.challenge and (free or mine):
            self._version += 1
            self._world.judge.may_start(mid)
            offer = Offer(
                run=run.plan.run,
                epoch=ledger.epoch,
                incarnation=beat.incarnation,
                challenge=challenge,
                sid=sid,
                mid=mid,
                version=self._version,
                answers=beat.beat,
                digest=run.plan.digest,
            )
            self._redis.set(("offer", beat.incarnation), offer)


def quiet_after(now: float) -> float:
    """When the leases that a coordinator process before this one has renewed are out."""
    return now + LEASE_S * 1.03
