"""Where numbers go: cut, written, then sent, and sent again until beats confirm them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from property.protocol_model.messages_model import Batch
from property.protocol_model.rules import HORIZON_S, MAX_LAG_S, RESEND_S, STOCK

if TYPE_CHECKING:
    from property.protocol_model.coordinator_model import CoordinatorModel
    from property.protocol_model.fleet_model import MemberModel


class PlacementModel:
    """Grants numbers of the pool to members. Methods raise RedisAway."""

    def __init__(self, coordinator: CoordinatorModel) -> None:
        self._run, self._world = coordinator, coordinator.world

    def place(self) -> None:
        """Drop what is too late; grant some numbers to who has fewest."""
        run, takers = self._run, self._run.fleet.takers()
        if run.stopping or not takers or not run.ledger.pool:
            return
        self._drop_late()
        memberships = run.ledger.memberships
        member = min(takers, key=lambda one: len(memberships[one.mid].open))
        numbers = self._choose(member)
        if not numbers or len(memberships[member.mid].open) >= STOCK:
            return
        seq = memberships[member.mid].seq + 1
        self._world.judge.ordered(run.plan.run, member.mid, numbers)
        if "journal-first" in self._world.rules:
            run.record("cut", member.mid, seq, numbers)
            member.unsent.append(seq)
            return
        try:
            self._send(member, seq, numbers)
        finally:
            if self._world.chance.random() < 0.1:
                run.crash()
            else:
                run.record("cut", member.mid, seq, numbers)

    def publish(self) -> None:
        """Send a batch that was cut; where a beat does not confirm them, send them again."""
        for member in self._run.fleet.members():
            known = self._run.ledger.memberships[member.mid]
            if not member.heard:
                member.unsent = []
                continue
            if member.unsent:
                seq = member.unsent[0]
                self._send(member, seq, known.cuts[seq])
                member.unsent.pop(0)
                member.sent_at = self._run.now()
                return
            late = member.got < known.seq and self._run.now() - member.sent_at > RESEND_S
            if late and "resend-batch" in self._world.rules:
                member.unsent = list(range(member.got + 1, known.seq + 1))[:8]

    def _choose(self, member: MemberModel) -> tuple[int, ...]:
        """Arrivals only as far ahead of the last sign of life as it may be silent."""
        plan = self._run.plan
        heard = self._world.now - (self._run.now() - member.beat_at)
        limit = heard + HORIZON_S if plan.open_load else float("inf")
        found = [
            number for number in self._run.ledger.grantable(member.mid) if plan.due(number) < limit
        ]
        return tuple(found[: self._world.chance.randint(1, 3)])

    def _drop_late(self) -> None:
        plan, ledger = self._run.plan, self._run.ledger
        if not plan.open_load:
            return
        late = [one for one in ledger.pool if plan.due(one) + MAX_LAG_S < self._world.now]
        for number in sorted(late)[:3]:
            if plan.idempotent or not ledger.holders[number]:
                self._run.record("drop", number)

    def _send(self, member: MemberModel, seq: int, numbers: tuple[int, ...]) -> None:
        name = self._run.ledger.memberships[member.mid].incarnation
        batch = Batch(self._run.plan.run, name, member.sid, seq, numbers)
        self._world.redis.append(("batches", name), batch)
