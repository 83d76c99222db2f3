"""The stock of a membership: batches come in by their numbers, users take out in this order."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from property.protocol_model.messages_model import Batch


class Stocked(NamedTuple):
    """A number in stock, with the place in its batch that a will names."""

    seq: int
    position: int
    number: int


class IntakeModel:
    """Batches that were taken, and what of them nobody has taken out yet."""

    def __init__(self, rules: frozenset[str]) -> None:
        self._rules = rules
        #: The last batch up to which all were taken or refused.
        self.got = 0
        self.stock: deque[Stocked] = deque()
        #: Where the last number stood that was taken out: what a supervisor can read.
        self.page = self._taken = (0, -1)
        self._early: dict[int, Batch] = {}
        self._refused: set[int] = set()
        self._recalled: set[int] = set()

    def offer(self, batch: Batch) -> None:
        """Take a batch whose turn it is; one before its turn waits, one that was taken is left."""
        if "sequence" not in self._rules:
            self._take(batch)
            self.got = max(self.got, batch.seq)
        elif batch.seq > self.got:
            self._early[batch.seq] = batch
            self._advance()

    def forget_early(self) -> None:
        """Drop the batches that wait for their turn: they belong to the session before."""
        self._early.clear()

    def first(self) -> Stocked | None:
        """What the next user takes out."""
        return self.stock[0] if self.stock else None

    def take_out(self) -> Stocked:
        """Take the first number out; from here on it counts as started."""
        taken = self.stock.popleft()
        place = (taken.seq, taken.position)
        self.page = place if "page-first" in self._rules else self._taken
        self._taken = place
        return taken

    def recall(self, seq: int) -> tuple[list[int], bool]:
        """The unstarted numbers of a batch, and whether the batch is refused; nothing twice."""
        if seq in self._recalled:
            return [], False
        self._recalled.add(seq)
        if seq > self.got:
            self._refused.add(seq)
            self._early.pop(seq, None)
            self._advance()
            return [], True
        back = [one.number for one in self.stock if one.seq == seq]
        self.stock = deque(one for one in self.stock if one.seq != seq)
        return back, False

    def clear(self) -> list[int]:
        """All unstarted numbers; the stock is empty then."""
        back = [one.number for one in self.stock]
        self.stock.clear()
        return back

    def _advance(self) -> None:
        while (following := self.got + 1) in self._early or following in self._refused:
            self.got = following
            batch = self._early.pop(following, None)
            if batch is not None and following not in self._refused:
                self._take(batch)

    def _take(self, batch: Batch) -> None:
        self.stock.extend(
            Stocked(batch.seq, position, number) for position, number in enumerate(batch.numbers)
        )
