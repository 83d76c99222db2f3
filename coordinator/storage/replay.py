"""Journal and blocks of a run as they lie on disk, also in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.decompression import decompressed
from osbench.common.errors import OsbenchError
from osbench.common.protocol.unpacking import unpack, unpack_all
from osbench.coordinator.storage.frames import placed_frames

Body = dict[str, Any]
#: A record of blocks is not larger than this, unpacked: it holds a bundle or one block.
RECORD_BYTES = 128 << 20
#: What a block has at least.
_FIELDS = frozenset(("columns", "workload", "incarnation"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """A record of the journal, or some bodies of blocks that were written together."""

    #: File and offset, for messages.
    place: str
    record: Body | None = None
    bodies: tuple[Body, ...] = ()


def journal_records(path: Path) -> Iterator[tuple[str, Body]]:
    """The journal with the place of each record, oldest first. Raises OsbenchError."""
    for offset, packed in placed_frames(path):
        place = f"{path} at byte {offset}"
        try:
            record = unpack(packed)
        except ValueError:
            raise OsbenchError(f"{path} is damaged at byte {offset}") from None
        if not isinstance(record, dict) or not isinstance(record.get("do"), str):
            raise OsbenchError(f"{path} is damaged at byte {offset}")
        yield place, record


def block_bundles(path: Path) -> Iterator[tuple[str, list[Body]]]:
    """The bodies of all blocks, by the record that they are in. Raises OsbenchError."""
    for offset, record in placed_frames(path):
        yield f"{path} at byte {offset}", bodies_of(path, offset, record)


def bodies_of(path: Path, offset: int, record: bytes) -> list[Body]:
    """The bodies of the blocks in a record of a file. Raises OsbenchError."""
    try:
        bodies = unpack_all(decompressed(record, RECORD_BYTES))
    except ValueError:
        raise OsbenchError(f"{path} is damaged at byte {offset}") from None
    if not all(isinstance(body, dict) and body.keys() >= _FIELDS for body in bodies):
        raise OsbenchError(f"{path} is damaged at byte {offset}")
    return list(bodies)


def replay(journal: Path, blocks: Path) -> Iterator[Replayed]:
    """Records and bodies in the order in which they were written. Raises OsbenchError.

    Each record says how many bodies came before it.
    """
    waiting = _Bodies(block_bundles(blocks))
    for place, record in journal_records(journal):
        before = record.get("blocks", waiting.taken)
        if not isinstance(before, int):
            raise OsbenchError(f"{place} does not say how many blocks came before it")
        yield from waiting.up_to(before)
        yield Replayed(place=place, record=record)
    yield from waiting.up_to(None)


class _Bodies:
    """Bodies of bundles, taken some at a time."""

    def __init__(self, bundles: Iterator[tuple[str, list[Body]]]) -> None:
        self._bundles = bundles
        self._place = ""
        self._left: list[Body] = []
        self.taken = 0

    def up_to(self, count: int | None) -> Iterator[Replayed]:
        """Those that come before there are `count`; None is all. No more than there are."""
        while count is None or self.taken < count:
            if not self._left:
                self._place, self._left = next(self._bundles, ("", []))
                if not self._left:
                    return
            size = len(self._left) if count is None else count - self.taken
            found, self._left = self._left[:size], self._left[size:]
            self.taken += len(found)
            yield Replayed(place=self._place, bodies=tuple(found))
