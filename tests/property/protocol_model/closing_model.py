"""When a run stops and when it is closed: no wait without an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from property.protocol_model.fleet_model import MemberModel, quiet_after
from property.protocol_model.rules import ALONE_S, SETTLE_S

if TYPE_CHECKING:
    from property.protocol_model.coordinator_model import CoordinatorModel


class ClosingModel:
    """Decides who is lost, what is wanted back, and when it is over."""

    def __init__(self, coordinator: CoordinatorModel) -> None:
        self._run, self._world = coordinator, coordinator.world
        self._company_at = self._lively_at = coordinator.waited()
        resumed = coordinator.ledger.epoch > 1
        self._quiet_after = quiet_after(coordinator.now()) if resumed else -9.0
        #: Entries of the results to be read before the run is closed; None while it goes on.
        self._to_read: int | None = None

    def decide(self) -> None:
        """Look at everything once. Raises RedisAway."""
        run, fleet = self._run, self._run.fleet
        fleet.age()
        members = fleet.members()
        if any(member.heard and self._busy(member) for member in members):
            self._lively_at = run.waited()
        self._recall_some(members)
        if fleet.takers() or not run.ledger.pool:
            self._company_at = run.waited()
        alone = self._bounded and run.waited() - self._company_at > ALONE_S
        finished = len(run.ledger.settled) == run.plan.size
        if alone or finished or self._world.now > run.plan.interrupted_at:
            run.stopping = True
        if run.stopping:
            for member in members:
                member.recall |= set(run.ledger.memberships[member.mid].open.values())
        if self._settled(members) or self._waited():
            self._close()

    def has_read(self, entries: int, *, full: bool) -> None:
        """Entries of the results were read; a read that is not full has come to their end."""
        if self._to_read is not None:
            self._to_read = max(0, self._to_read - entries) if full else 0

    @property
    def _bounded(self) -> bool:
        return "bounds" in self._world.rules

    def _busy(self, member: MemberModel) -> bool:
        # one that has taken all its batches and is idle has told all: what is open then stays open
        known = self._run.ledger.memberships[member.mid]
        return not member.idle or (bool(known.open) and member.got < known.seq)

    def _recall_some(self, members: list[MemberModel]) -> None:
        """Ask a member for its newest batch, as levelling would; forget what has come back."""
        if self._run.stopping:
            return
        for member in members:
            held = set(self._run.ledger.memberships[member.mid].open.values())
            if not member.recall & held:
                member.recall = set()
            if held and member.here and not member.recall and self._world.chance.random() < 0.01:
                member.recall = {max(held)}

    def _settled(self, members: list[MemberModel]) -> bool:
        """Nothing can come any more."""
        run = self._run
        if len(run.ledger.settled) == run.plan.size and run.now() > self._quiet_after:
            # others have started them again; who is heard may still hold the first grant of one
            held = run.ledger.memberships
            return not any(member.heard and held[member.mid].open for member in members)
        return (run.stopping or not run.ledger.pool) and not run.ledger.waiting

    def _waited(self) -> bool:
        """Nothing has come for long enough, and what stood there at the end of the wait is read."""
        run = self._run
        silent = run.waited() - max(run.progress_at, self._lively_at) > SETTLE_S
        quiet = run.now() > self._quiet_after
        expired = (run.stopping or not run.ledger.pool) and silent and quiet
        if not (expired and self._bounded):
            self._to_read = None
            return False
        if self._to_read is None and "last-look" in self._world.rules:
            self._to_read = self._world.redis.length(("results", run.plan.run))
        return not self._to_read

    def _close(self) -> None:
        ledger = self._run.ledger
        for mid in ledger.memberships:
            self._world.judge.may_not_start(mid)
        self._run.record("close", ledger.verdict())
