"""The disk of a run: a journal and the blocks, written and synced before anything follows."""

from __future__ import annotations

from typing import Any

from property.protocol_model.ledger_model import LedgerModel
from property.protocol_model.messages_model import Block

#: A method of the ledger, and what it is called with.
Record = tuple[str, tuple[Any, ...]]


class RunDirectoryModel:
    """Two files. A record of the journal says how many blocks were on disk before it."""

    def __init__(self) -> None:
        self.journal: list[tuple[int, Record]] = []
        self.blocks: list[Block] = []

    def note(self, record: Record) -> None:
        """Write a record behind all blocks that are here."""
        self.journal.append((len(self.blocks), record))

    def keep(self, block: Block) -> None:
        """Write a block."""
        self.blocks.append(block)

    def fold(self, ledger: LedgerModel, *, ordered: bool = True) -> None:
        """Do again to a new ledger what was done to the one before, in the same order."""
        done = 0
        for before, (kind, details) in self.journal:
            for block in self.blocks[done:before] if ordered else ():
                ledger.block(block)
            done = before if ordered else 0
            getattr(ledger, kind)(*details)
        for block in self.blocks[done:]:
            ledger.block(block)

    def copy(self) -> RunDirectoryModel:
        """A copy on another host."""
        other = RunDirectoryModel()
        other.journal, other.blocks = list(self.journal), list(self.blocks)
        return other
