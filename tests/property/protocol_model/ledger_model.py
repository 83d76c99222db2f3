"""Which membership may start which number, and how each number ended. Follows from the disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from property.protocol_model.messages_model import Block, Will


@dataclass(slots=True)
class Membership:
    """What the disk says of one stay of a worker in the run."""

    mid: int
    incarnation: str
    #: The last batch that was cut for it, and the numbers of each.
    seq: int = 0
    cuts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    #: Numbers granted and neither reported nor given back, each with its batch.
    open: dict[int, int] = field(default_factory=dict)
    #: Numbers of the blocks on disk.
    blocks: set[int] = field(default_factory=set)
    final: int = 0
    willed: bool = False
    #: Blocks 1 to `ack` are on disk.
    ack: int = 0

    @property
    def ended(self) -> bool:
        """It has left, or its process is dead: nothing is granted to it any more."""
        return bool(self.final) or self.willed


class LedgerModel:
    """The state of a run as the records of its journal and its blocks make it."""

    def __init__(self, size: int, rules: frozenset[str]) -> None:
        self._rules = rules
        self.size = size
        self.epoch = 0
        self.memberships: dict[int, Membership] = {}
        #: Numbers that can be granted.
        self.pool = set(range(size))
        #: Memberships that may have started a number.
        self.holders: dict[int, set[int]] = defaultdict(set)
        self.settled: dict[int, str] = {}
        #: How often a number, and a block, has gone into the sums.
        self.counted: Counter[int] = Counter()
        self.applied: Counter[tuple[int, int]] = Counter()
        self.states: dict[int, str] | None = None

    # records of the journal

    def begin(self, epoch: int) -> None:
        """A coordinator process takes the run over."""
        self.epoch = epoch

    def join(self, mid: int, incarnation: str) -> None:
        """A worker is a member."""
        self.memberships[mid] = Membership(mid, incarnation)

    def cut(self, mid: int, seq: int, numbers: tuple[int, ...]) -> None:
        """Numbers of the pool are granted to a member as a batch."""
        member = self.memberships[mid]
        member.seq = max(member.seq, seq)
        member.cuts[seq] = numbers
        for number in numbers:
            member.open[number] = seq
            self.holders[number].add(mid)
            self.pool.discard(number)

    def again(self, mid: int) -> None:
        """Open numbers of a lost member may be started by others; it may have started them."""
        member = self.memberships[mid]
        self.pool.update(number for number in member.open if number not in self.settled)
        if "consent" not in self._rules:
            member.open.clear()

    def drop(self, number: int) -> None:
        """Nobody starts an arrival that is too late."""
        self.pool.discard(number)
        self.settled[number] = "dropped"

    def will(self, will: Will) -> None:
        """What lies behind the place that the will names was never started."""
        member = self.memberships[will.mid]
        member.willed = True
        self._give_back(
            member,
            [
                number
                for number, seq in member.open.items()
                if (seq, member.cuts[seq].index(number)) > (will.seq, will.position)
            ],
        )

    def close(self, states: dict[int, str]) -> None:
        """The run is over; this is what it tells."""
        self.states = states

    # blocks

    def block(self, block: Block) -> None:
        """Settle the rows of a block, take back what it returns."""
        member = self.memberships[block.mid]
        member.blocks.add(block.number)
        self.applied[block.mid, block.number] += 1
        self._acknowledge(member)
        for number, outcome in block.rows:
            self._settle(member, number, outcome)
        voided = [number for number, seq in member.open.items() if seq in block.voids]
        self._give_back(member, [*block.returned, *voided])
        if block.final:
            member.final = block.number
        if member.final and ("whole" not in self._rules or member.ack >= member.final):
            self._give_back(member, list(member.open))

    # what follows

    @property
    def waiting(self) -> bool:
        """A member may still start or report something."""
        return any(member.open for member in self.memberships.values())

    def grantable(self, mid: int) -> list[int]:
        """Numbers that may be granted to a member, ascending."""
        mine = self.memberships[mid].open if "one-grant" in self._rules else {}
        return sorted(number for number in self.pool if number not in mine)

    def verdict(self) -> dict[int, str]:
        """How each number ended, where the run is closed now."""
        return {number: self._fate(number) for number in range(self.size)}

    def _fate(self, number: int) -> str:
        if number in self.settled:
            return self.settled[number]
        held = self.holders[number] and "holders" in self._rules
        return "lost" if held or number not in self.pool else "not_started"

    def _settle(self, member: Membership, number: int, outcome: str) -> None:
        member.open.pop(number, None)
        known = number in self.settled and "settled-once" in self._rules
        if known or member.mid not in self.holders[number]:
            return
        self.settled[number] = "dropped" if outcome == "late" else outcome
        self.counted[number] += 1
        self.pool.discard(number)

    def _give_back(self, member: Membership, numbers: Iterable[int]) -> None:
        for number in numbers:
            if member.open.pop(number, None) is None:
                continue
            holders = self.holders[number]
            holders.discard(member.mid)
            if number not in self.settled and not holders:
                self.pool.add(number)

    def _acknowledge(self, member: Membership) -> None:
        while member.ack + 1 in member.blocks:
            member.ack += 1
