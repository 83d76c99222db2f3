"""Membership of a worker process in a run, by journal and result blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Blocks that are looked for at once: who has the key may say that any number was acknowledged.
MISSING_MOST = 10_000


@dataclass(slots=True, kw_only=True)
class Membership:
    """Blocks, batches and losses of one membership, kept until the end of the run."""

    #: Id of its first session.
    mid: str
    incarnation: str
    #: Key of the worker in ledger, statistics and error groups, and its incarnation in the bodies
    #: of blocks on disk: the incarnation for its first membership in the run, with "+2", "+3" for
    #: later ones.
    name: str
    #: The last batch that was granted.
    seq: int = 0
    #: All blocks up to this number are on disk, and these behind the first gap.
    acknowledged: int = 0
    have: set[int] = field(default_factory=set)
    #: Number of its final block; 0 while that has not come.
    final: int = 0
    #: Counted as lost now.
    lost: bool = False
    #: A block could not be read: which of its iterations ran cannot be known any more.
    damaged: bool = False

    @property
    def whole(self) -> bool:
        """Return whether all its blocks are on disk: none is in transit, and it starts nothing."""
        return 0 < self.final <= self.acknowledged

    def has(self, number: int) -> bool:
        """Return whether a block is on disk."""
        return number <= self.acknowledged or number in self.have

    def missing(self, delivered: int) -> list[int]:
        """Return the blocks up to `delivered` that are not on disk, `MISSING_MOST` at most."""
        behind = range(self.acknowledged + 1, min(delivered, self.acknowledged + MISSING_MOST) + 1)
        return [number for number in behind if number not in self.have]

    def note(self, number: int) -> None:
        """Note that a block is on disk."""
        if number > self.acknowledged:
            self.have.add(number)
            while self.acknowledged + 1 in self.have:
                self.acknowledged += 1
                self.have.remove(self.acknowledged)
