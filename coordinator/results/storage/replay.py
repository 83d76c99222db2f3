"""Reads journal and result blocks of a run from disk, also merged in the order of writing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import DamagedRun
from osbench.common.files.decompression import decompress
from osbench.common.files.regular_files import size_of
from osbench.common.protocol.unpacking import unpack, unpack_all
from osbench.coordinator.results.storage.frames import placed_frames

Body = dict[str, Any]
#: A record of blocks is not larger than this, unpacked: it holds a bundle or one block.
RECORD_BYTES = 128 << 20
#: What a block has at least.
_FIELDS = frozenset(("columns", "workload", "incarnation"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """A step of a replay: a record of the journal, or bodies of result blocks written together.

    If `record` is None, there are `bodies`; otherwise there are none.
    """

    #: File and offset, for messages.
    place: str
    record: Body | None = None
    bodies: tuple[Body, ...] = ()


def journal_records(
    path: Path, *, tolerant: bool = False, least: int = 0
) -> Iterator[tuple[str, Body]]:
    """Yield the records of the journal, oldest first, each with its file and offset as text.

    Raises DamagedRun for an unreadable record, unless `tolerant`, which skips it. A torn last one
    is skipped as well, unless it is in the first `least` bytes, which were complete once. Raises
    OsbenchError if the file cannot be opened.
    """
    for offset, packed in placed_frames(path, tolerant=tolerant, least=least):
        try:
            record = unpack(packed)
        except ValueError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("do"), str):
            yield f"{path} at byte {offset}", record
        elif not tolerant:
            raise DamagedRun(f"{path} is damaged at byte {offset}")


def block_bundles(
    path: Path, *, tolerant: bool = False, least: int = 0
) -> Iterator[tuple[str, list[Body]]]:
    """Yield the bodies of all result blocks: (file and offset as text, list) per stored record.

    Raises DamagedRun for an unreadable record, unless `tolerant`, which skips it. A torn last one
    is skipped as well, unless it is in the first `least` bytes, which were complete once. Raises
    OsbenchError if the file cannot be opened.
    """
    for offset, record in placed_frames(path, tolerant=tolerant, least=least):
        try:
            yield f"{path} at byte {offset}", bodies_of(path, offset, record)
        except DamagedRun:
            if not tolerant:
                raise


def bodies_of(path: Path, offset: int, record: bytes) -> list[Body]:
    """Return the bodies of the result blocks that are compressed in one record of a file.

    `path` and `offset` are for the message. Raises DamagedRun if the record cannot be decoded, or a
    body lacks a field.
    """
    try:
        bodies = unpack_all(decompress(record, RECORD_BYTES))
    except ValueError:
        raise DamagedRun(f"{path} is damaged at byte {offset}") from None
    if not all(isinstance(body, dict) and body.keys() >= _FIELDS for body in bodies):
        raise DamagedRun(f"{path} is damaged at byte {offset}")
    return list(bodies)


def _check_run(place: str, bodies: Iterable[Body], run_id: str) -> None:
    """Bodies of older releases name no run. Raises DamagedRun for a body of another run."""
    for body in bodies if run_id else ():
        named = body.get("run", run_id)
        if named != run_id:
            raise DamagedRun(f"{place} belongs to run {named}, not to run {run_id}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """Known facts on journal and blocks of a run, by which a cut or foreign file is detected."""

    #: The run's id; "" if it is unknown.
    run_id: str = ""
    #: Bytes of each that were on disk once.
    journal: int = 0
    blocks: int = 0


def bound_by(journal: Path, blocks: Path, noted: Binding) -> Binding:
    """Return `noted`, with the size of the blocks that the journal itself states if it is larger.

    `noted`: the run's id, and sizes known from elsewhere. Reads the journal and the first blocks.
    Raises DamagedRun if a file is of another run, shorter than known, or has an unreadable record.
    Journals of older releases name neither their run nor sizes.
    """
    _check_size(journal, noted.journal)
    expected = noted.blocks
    for place, record in journal_records(journal, least=noted.journal):
        named = record.get("run")
        if record["do"] == "open" and noted.run_id and named not in (None, noted.run_id):
            raise DamagedRun(f"{place} belongs to run {named}, not to run {noted.run_id}")
        size = record.get("bytes", 0)
        expected = max(expected, size) if isinstance(size, int) else expected
    _check_size(blocks, expected)
    for place, bodies in itertools.islice(block_bundles(blocks), 1):
        _check_run(place, bodies, noted.run_id)
    return Binding(run_id=noted.run_id, journal=noted.journal, blocks=expected)


def _check_size(path: Path, least: int) -> None:
    size = size_of(path) if path.exists() else 0
    if size < least:
        raise DamagedRun(f"{path} is damaged: it has {size:,} of at least {least:,} bytes")


def replay(
    journal: Path, blocks: Path, known: Binding, *, tolerant: bool = False
) -> Iterator[Replayed]:
    """Yield records of the journal and bodies of blocks in the order in which they were written.

    Each record says how many bodies came before it. Raises DamagedRun if that is not an integer,
    bodies are missing or name another run than `known`, or a record is unreadable. `tolerant` skips
    unreadable records, and checks neither run nor missing bodies.
    """
    bundles = block_bundles(blocks, tolerant=tolerant, least=known.blocks)
    waiting = _Bodies(bundles, "" if tolerant else known.run_id)
    for place, record in journal_records(journal, tolerant=tolerant, least=known.journal):
        before = record.get("blocks", waiting.taken)
        if not isinstance(before, int):
            raise DamagedRun(f"{place} does not say how many blocks came before it")
        yield from waiting.up_to(before)
        if waiting.taken < before and not tolerant:
            raise DamagedRun(
                f"{blocks} is damaged: it holds {waiting.taken:,} of at least {before:,} blocks, "
                f"as {place} says"
            )
        yield Replayed(place=place, record=record)
    yield from waiting.up_to(None)


class _Bodies:
    """Bodies of result blocks, taken from bundles in order, up to a given count.

    A bundle is the list of bodies in one stored record, with its place.
    """

    def __init__(self, bundles: Iterator[tuple[str, list[Body]]], run_id: str) -> None:
        self._bundles = bundles
        self._run_id = run_id
        self._place = ""
        self._left: list[Body] = []
        self.taken = 0

    def up_to(self, count: int | None) -> Iterator[Replayed]:
        """Yield the next bodies, until `count` bodies were taken in all; all for None.

        Each step has bodies of one bundle. Yields fewer if there are no more. Raises DamagedRun for
        a body of another run.
        """
        while count is None or self.taken < count:
            if not self._left:
                self._place, self._left = next(self._bundles, ("", []))
                if not self._left:
                    return
                _check_run(self._place, self._left, self._run_id)
            size = len(self._left) if count is None else count - self.taken
            found, self._left = self._left[:size], self._left[size:]
            self.taken += len(found)
            yield Replayed(place=self._place, bodies=tuple(found))
