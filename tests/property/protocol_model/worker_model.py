"""A worker process, and its supervisor, which outlives it. A step is one indivisible thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from property.protocol_model.membership_model import MembershipModel
from property.protocol_model.messages_model import (
    Batch,
    Beat,
    Block,
    Control,
    Offer,
    SpecificationModel,
    Will,
)
from property.protocol_model.rules import BEAT_S, COORDINATOR_LOST_S, MAX_LAG_S, RESEND_S, USERS

if TYPE_CHECKING:
    from property.protocol_model.world import World


class WorkerModel:
    """A worker process by its incarnation."""

    def __init__(self, world: World, incarnation: str) -> None:
        self._world, self.incarnation = world, incarnation
        self._redis, self._rules, self._judge = world.redis, world.rules, world.judge
        self._rate = world.drift()
        #: Dead processes take no steps, but their supervisors do.
        self.alive, self.supervised = True, False
        self.paused = False
        self._slept, self._frozen_at = 0.0, -1.0
        self._beat, self._beat_at = 0, -9.0
        #: When the last beats were sent.
        self._sent: dict[int, float] = {}
        self._challenge = world.nonce()
        self.member: MembershipModel | None = None
        #: Memberships that were left with blocks to deliver.
        self._left: list[MembershipModel] = []
        self._buried: set[int] = set()

    def now(self) -> float:
        """Seconds, by the clock of this host."""
        return (self._world.now - self._slept) * self._rate

    def pause(self, *, clock_stops: bool) -> None:
        """Take no steps for a while."""
        self.paused = True
        self._frozen_at = self._world.now if clock_stops else -1.0

    def wake(self) -> None:
        """Take steps again."""
        if self._frozen_at >= 0:
            self._slept += self._world.now - self._frozen_at
        self.paused, self._frozen_at = False, -1.0

    def kill(self, *, supervised: bool) -> None:
        """End the process, with or without its supervisor."""
        self.alive, self.supervised = False, supervised

    @property
    def held(self) -> bool:
        """It, or its supervisor, waits for a coordinator."""
        if not self.alive:
            kept = {member.mid for member in self._memberships()}
            return self.supervised and not kept <= self._buried
        return self.member is not None or any(len(member.outbox) for member in self._left)

    def step(self) -> None:
        """Do one thing, by chance. Raises RedisAway."""
        if not self.alive:
            self._bury()
            return
        share = self._world.chance.random()
        if self.now() - self._beat_at > BEAT_S:
            self._send_beat()
        elif share < 0.25:
            self._listen()
        elif share < 0.40:
            self._take()
        elif share < 0.60:
            self._pop()
        elif share < 0.75:
            self._start()
        elif share < 0.88:
            self._end()
        else:
            self._ship()

    def _memberships(self) -> list[MembershipModel]:
        return [*self._left, *([self.member] if self.member else [])]

    # beats and their answers

    def _send_beat(self) -> None:
        member = self.member
        unheard = member is not None and self.now() - member.heard_at > COORDINATOR_LOST_S
        if member is not None and unheard and "bounds" in self._rules:
            member.leaving = True
        self._beat, self._beat_at = self._beat + 1, self.now()
        self._sent[self._beat] = self._beat_at
        self._sent.pop(self._beat - 60, None)
        beat = Beat(self.incarnation, self._beat, self._challenge)
        if member is not None:
            beat = beat._replace(
                run=member.run,
                epoch=member.epoch,
                sid=member.sid,
                mid=member.mid,
                got=member.intake.got,
                idle=member.idle,
            )
        self._redis.set(("beat", self.incarnation), beat)

    def _listen(self) -> None:
        for member in self._memberships():
            self._hear_control(member)
        if self.member is not None and self.member.specification is None:
            self._fetch_specification(self.member)
        self._left = [member for member in self._left if len(member.outbox)]
        (offer,) = self._redis.get(("offer", self.incarnation))
        if isinstance(offer, Offer) and offer.incarnation == self.incarnation:
            self._consider(offer)

    def _hear_control(self, member: MembershipModel) -> None:
        (control,) = self._redis.get(("control", member.run, member.mid))
        if not isinstance(control, Control) or not _meant(control, member):
            return
        member.acknowledge(control)
        if member is self.member and member.follow(control, self.now()):
            sent = self._sent.get(control.answers)
            member.renew(sent if "lease-sent" in self._rules else self.now())

    def _fetch_specification(self, member: MembershipModel) -> None:
        (found,) = self._redis.get(("specification", member.run))
        if not isinstance(found, SpecificationModel):
            return
        if found.digest == member.wanted or "specification" not in self._rules:
            member.specification = found.digest

    def _consider(self, offer: Offer) -> None:
        if offer.challenge != self._challenge and "challenge" in self._rules:
            return
        member = self.member
        if member is None:
            member = self.member = MembershipModel(offer, self.now(), self._rules)
        elif offer.run == member.run and offer.epoch > member.epoch:
            member.take_over(offer, self.now())
        else:
            return
        self._challenge = self._world.nonce()
        member.renew(self._sent.get(offer.answers))

    # work

    def _take(self) -> None:
        batch = self._redis.pop(("batches", self.incarnation))
        if self.member is not None and isinstance(batch, Batch):
            self.member.offer(batch)

    def _pop(self) -> None:
        """A free user takes out what is due, while the lease holds."""
        member = self.member
        if member is None or member.specification is None or member.leaving:
            return
        if len(member.running) + len(member.ready) >= USERS:
            return
        if self.now() >= member.lease and "lease" in self._rules:
            return
        first = member.intake.first()
        plan = self._world.plans[member.run]
        if first is None or plan.due(first.number) > self._world.now:
            return
        number = member.intake.take_out().number
        if plan.open_load and self._world.now > plan.due(number) + MAX_LAG_S:
            member.report(number, "late")
            return
        member.ready.append(number)
        self._judge.popped(member.mid)

    def _start(self) -> None:
        """A user sends the request; it may have been paused since it took the number out."""
        if self.member is None:
            return
        number = self.member.begin()
        if number is not None:
            member = self.member
            self._judge.started(member.run, member.mid, number, member.specification)

    def _end(self) -> None:
        if self.member is not None:
            self.member.end(self._world.chance)

    # what it tells

    def _ship(self) -> None:
        member = self.member
        block = member.pack() if member is not None else None
        if member is not None and block is not None:
            if "final" not in self._rules:
                self._send(member, block)
            if block.final:
                self._left.append(member)
                self._leave()
            if "final" in self._rules:
                self._send(member, block)
        elif member is not None and member.over and member.at_rest:
            self._leave()
        for one in self._memberships():
            self._send_again(one)

    def _leave(self) -> None:
        self.member, self._challenge = None, self._world.nonce()

    def _send_again(self, member: MembershipModel) -> None:
        if self.now() - member.sent_at <= RESEND_S or "resend-block" not in self._rules:
            return
        for block in member.outbox.unacknowledged()[:4]:
            self._send(member, block)

    def _send(self, member: MembershipModel, message: Block | Will) -> None:
        member.sent_at = self.now()
        self._redis.append(("results", member.run), message)

    def _bury(self) -> None:
        """The supervisor sends a will for each membership until one is on disk."""
        for member in self._memberships():
            (control,) = self._redis.get(("control", member.run, member.mid))
            if isinstance(control, Control) and _meant(control, member):
                known = control.willed and "will-once" in self._rules
                self._buried |= {member.mid} if known or control.over else set()
            if member.mid not in self._buried and self.now() - member.sent_at > RESEND_S:
                self._send(member, member.will())


def _meant(control: Control, member: MembershipModel) -> bool:
    place = (control.run, control.incarnation, control.mid)
    return place == (member.run, member.incarnation, member.mid)
