"""Membership: one stay of a worker process in a run, as journal and result blocks show it."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Most block numbers that are checked at once: a holder of the key may claim any number.
MISSING_MOST = 10_000


@dataclass(slots=True, kw_only=True)
class Membership:
    """State of one membership in the coordinator: blocks on disk, last granted batch, losses.

    A membership is one stay of a worker process in a run. It is kept until the end of the run.
    """

    #: Id of its first session.
    mid: str
    incarnation: str
    #: Key of the worker in ledger, statistics and error groups, and its incarnation in the bodies
    #: of blocks on disk: the incarnation for its first membership in the run, with "+2", "+3" for
    #: later ones.
    name: str
    #: The last batch that was granted.
    seq: int = 0
    #: All blocks up to this number are on disk; `have` has further numbers, behind a gap.
    acknowledged: int = 0
    have: set[int] = field(default_factory=set)
    #: Number of its final block; 0 until that block has been received.
    final: int = 0
    #: Counted as lost now.
    lost: bool = False
    #: A block could not be read, so which of its iterations ran is unknown for good.
    damaged: bool = False

    @property
    def whole(self) -> bool:
        """Return whether the final block and all before are on disk: no result can follow."""
        return 0 < self.final <= self.acknowledged

    def has(self, number: int) -> bool:
        """Return whether the result block with this number is on disk."""
        return number <= self.acknowledged or number in self.have

    def missing(self, delivered: int) -> list[int]:
        """Return the block numbers from 1 to `delivered` that are not on disk, ascending.

        Only the first `MISSING_MOST` numbers above `acknowledged` are examined.
        """
        behind = range(self.acknowledged + 1, min(delivered, self.acknowledged + MISSING_MOST) + 1)
        return [number for number in behind if number not in self.have]

    def note(self, number: int) -> None:
        """Note that the result block `number` is on disk; does nothing if that is known.

        Then `acknowledged` is the highest number up to which all blocks are on disk.
        """
        if number > self.acknowledged:
            self.have.add(number)
            while self.acknowledged + 1 in self.have:
                self.acknowledged += 1
                self.have.remove(self.acknowledged)
