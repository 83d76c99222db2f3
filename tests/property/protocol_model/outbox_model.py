"""The blocks of a membership, kept until the coordinator has them on disk."""

from __future__ import annotations

from property.protocol_model.messages_model import Block


class OutboxModel:
    """Numbers blocks from 1 and keeps them until they are acknowledged."""

    def __init__(self) -> None:
        self._next = 1
        self._kept: dict[int, Block] = {}
        self._have: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._kept)

    def number(self) -> int:
        """The number of the next block."""
        return self._next

    def put(self, block: Block) -> None:
        """Keep a block, which has the number that `number` has named."""
        self._kept[block.number] = block
        self._next += 1

    def acknowledge(self, ack: int, have: tuple[int, ...]) -> None:
        """Drop the blocks up to `ack`; those of `have` need not be sent again for now."""
        self._have = frozenset(have)
        self._kept = {number: block for number, block in self._kept.items() if number > ack}

    def unacknowledged(self) -> list[Block]:
        """Blocks to be sent again, oldest first."""
        return [block for number, block in sorted(self._kept.items()) if number not in self._have]

    def clear(self) -> None:
        """Drop all: the run is over."""
        self._kept.clear()
