"""One process that coordinates one run. What it knows for sure is what its disk says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from property.protocol_model.closing_model import ClosingModel
from property.protocol_model.fleet_model import FleetModel
from property.protocol_model.ledger_model import LedgerModel
from property.protocol_model.messages_model import Block, Message, Will
from property.protocol_model.placement_model import PlacementModel
from property.protocol_model.rules import READ
from property.protocol_model.run_directory_model import RunDirectoryModel

if TYPE_CHECKING:
    from property.protocol_model.world import World


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanModel:
    """What a run is to do."""

    run: str
    #: Digest of its specification.
    digest: int
    size: int
    #: Workers it asks for.
    workers: int
    open_load: bool
    idempotent: bool
    #: When somebody stops it.
    interrupted_at: float

    def due(self, number: int) -> float:
        """When a number may start, in true seconds."""
        return 3.0 + number * 0.8 if self.open_load else 0.0


class CoordinatorModel:
    """A coordinator process: starts or resumes a run, and ends it."""

    def __init__(self, world: World, plan: PlanModel, disk: RunDirectoryModel) -> None:
        self.world, self.plan, self.disk = world, plan, disk
        self._rate = world.drift()
        self.alive, self.paused, self.done = True, False, False
        #: Another process has resumed the run.
        self.superseded = False
        self.stopping = False
        self.ledger = LedgerModel(plan.size, world.rules)
        disk.fold(self.ledger, ordered="fold-order" in world.rules)
        #: Seconds in which it has looked at its workers: it was awake, and Redis answered.
        self.watched = 0.0
        self.progress_at = self.waited()
        self.record("begin", self.ledger.epoch + 1)
        self.fleet, self.placement = FleetModel(self), PlacementModel(self)
        self.closing = ClosingModel(self)
        #: Entries of the results that are on disk and not yet deleted.
        self._stored: list[Message] = []

    def now(self) -> float:
        """Seconds, by the clock of this host."""
        return self.world.now * self._rate

    def waited(self) -> float:
        """Seconds that count as waiting for workers."""
        return self.watched if "watched" in self.world.rules else self.now()

    def record(self, kind: str, *details: Any) -> None:
        """Write a decision to the disk, then let it be true."""
        self.disk.note((kind, details))
        getattr(self.ledger, kind)(*details)
        self.progress_at = self.waited()

    def crash(self) -> None:
        """End the process where it stands."""
        self.alive = False

    def step(self) -> None:
        """Do one thing, by chance. Raises RedisAway."""
        share = self.world.chance.random()
        if self.ledger.states is not None:
            self._farewell()
        elif share < 0.30:
            self.fleet.poll()
        elif share < 0.45:
            self.fleet.answer()
        elif share < 0.60:
            self.placement.place()
        elif share < 0.75:
            self.placement.publish()
        elif share < 0.90:
            self._read()
        else:
            self.closing.decide()
        if self.superseded:
            self.crash()

    def _read(self) -> None:
        """Write what has come and count it; acknowledge and delete it in a later step, or never."""
        key = ("results", self.plan.run)
        if self._stored:
            self.world.redis.delete(key, self._stored)
            self._stored = []
            return
        entries = self.world.redis.read(key)
        closed = self.ledger.states is not None
        for entry in entries:
            if isinstance(entry, Block | Will) and self._known(entry) and not closed:
                self._store(entry)
        self._stored = entries
        self.closing.has_read(len(entries), full=len(entries) == READ)

    def _known(self, message: Block | Will) -> bool:
        """It is of this run. A worker may have joined just before the coordinator died."""
        if message.run != self.plan.run:
            return False
        unknown = message.mid not in self.ledger.memberships
        if unknown and "unknown-member" in self.world.rules:
            self.record("join", message.mid, message.incarnation)
        return message.mid in self.ledger.memberships

    def _store(self, message: Block | Will) -> None:
        member = self.ledger.memberships[message.mid]
        if isinstance(message, Will):
            if not member.willed:
                self.record("will", message)
        elif message.number not in member.blocks or "once" not in self.world.rules:
            if "ack-disk" not in self.world.rules:
                self._acknowledge_first(message)
            if self.alive:
                self.disk.keep(message)
                self.ledger.block(message)
                self.progress_at = self.waited()
        self.fleet.answer_soon(message.mid)

    def _acknowledge_first(self, block: Block) -> None:
        """What a coordinator must not do: acknowledge a block that is not on disk."""
        known = self.ledger.memberships[block.mid]
        known.ack = max(known.ack, block.number)
        self.fleet.control(self.fleet.member(block.mid))
        if self.world.chance.random() < 0.3:
            self.crash()

    def _farewell(self) -> None:
        self._read()
        for member in self.fleet.members():
            self.fleet.control(member, over=True)
        self.done = True
