"""A worker's side of one membership: its lease, what it runs, and what it has to tell."""

from __future__ import annotations

import random

from property.protocol_model.intake_model import IntakeModel
from property.protocol_model.messages_model import Batch, Block, Control, Offer, Will
from property.protocol_model.outbox_model import OutboxModel
from property.protocol_model.rules import LEASE_S


class MembershipModel:
    """One stay of a worker in a run. Knows no clock: instants are those of the worker."""

    def __init__(self, offer: Offer, now: float, rules: frozenset[str]) -> None:
        self._rules = rules
        self.run, self.incarnation, self.mid = offer.run, offer.incarnation, offer.sid
        self.epoch, self.sid, self.version = offer.epoch, offer.sid, offer.version
        self.wanted = offer.digest
        #: Digest of the specification that it has.
        self.specification: int | None = None
        self.heard_at, self.lease, self.sent_at = now, -9.0, -9.0
        self.intake, self.outbox = IntakeModel(rules), OutboxModel()
        #: Numbers that users have taken out, and those of them that are running.
        self.ready: list[int] = []
        self.running: list[int] = []
        self._rows: list[tuple[int, str]] = []
        self._returned: list[int] = []
        self._voids: list[int] = []
        self.leaving = self.over = False

    @property
    def at_rest(self) -> bool:
        """No user has anything in hand."""
        return not (self.ready or self.running)

    @property
    def idle(self) -> bool:
        """Nothing is to be done or told."""
        return self.at_rest and not (self.intake.stock or self._news or len(self.outbox))

    @property
    def _news(self) -> bool:
        return bool(self._rows or self._returned or self._voids)

    def take_over(self, offer: Offer, now: float) -> None:
        """Go on under a coordinator process that has resumed the run."""
        self.sid, self.epoch, self.version = offer.sid, offer.epoch, offer.version
        self.heard_at, self.leaving = now, False
        self.intake.forget_early()

    def renew(self, sent: float | None) -> None:
        """Let the lease run from when the answered beat was sent."""
        if sent is not None:
            self.lease = max(self.lease, sent + LEASE_S)

    def acknowledge(self, control: Control) -> None:
        """Follow what is true for ever, under whatever session it was said."""
        self.outbox.acknowledge(control.ack, control.have)
        if control.over:
            self.over = self.leaving = True
            self.intake.clear()
            self.outbox.clear()

    def follow(self, control: Control, now: float) -> bool:
        """Follow the rest of a control; False where it is none of this session, or an old one."""
        fits = control.sid == self.sid
        if not fits or (control.version <= self.version and "version" in self._rules):
            return False
        self.version, self.heard_at = control.version, now
        for seq in control.recall:
            back, refused = self.intake.recall(seq)
            self._returned += back
            self._voids += [seq] if refused else []
            if "pop-first" not in self._rules:
                self._returned += self.ready
        return True

    def offer(self, batch: Batch) -> None:
        """Take a batch of this session."""
        own = (batch.incarnation, batch.sid) == (self.incarnation, self.sid)
        if batch.run != self.run or (not own and "session" in self._rules):
            return
        if not self.leaving:
            self.intake.offer(batch)

    def report(self, number: int, outcome: str) -> None:
        """Tell how a number ended."""
        self._rows.append((number, outcome))

    def begin(self) -> int | None:
        """A user sends the request of a number that it has taken out."""
        if not self.ready:
            return None
        self.running.append(self.ready.pop(0))
        return self.running[-1]

    def end(self, chance: random.Random) -> None:
        """One of the running iterations ends."""
        if self.running:
            number = self.running.pop(chance.randrange(len(self.running)))
            self.report(number, chance.choice(("ok", "ok", "failed")))

    def pack(self) -> Block | None:
        """Put what is to be told into a block and keep it; None where there is nothing."""
        if self.over:
            return None
        if self.leaving:
            self._returned += self.intake.clear()
            if "pop-first" not in self._rules:
                self._returned += self.ready
        final = self.leaving and self.at_rest
        if not (self._news or final):
            return None
        block = Block(
            run=self.run,
            incarnation=self.incarnation,
            mid=self.mid,
            number=self.outbox.number(),
            rows=tuple(self._rows),
            returned=tuple(self._returned),
            voids=tuple(self._voids),
            final=final,
        )
        self._rows, self._returned, self._voids = [], [], []
        self.outbox.put(block)
        return block

    def will(self) -> Will:
        """What the supervisor signs when the process is dead."""
        return Will(self.run, self.incarnation, self.mid, *self.intake.page)
