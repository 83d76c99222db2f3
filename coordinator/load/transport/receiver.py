"""Receives blocks of results from workers: writes each to disk, then counts it, exactly once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from osbench.common.protocol.messages import Block, Will
from osbench.coordinator.results.accounting.accounts import Accounts, Arrival
from osbench.coordinator.results.accounting.merging import groups
from osbench.coordinator.results.storage.run_directory import RunDirectory

LOG = logging.getLogger(__name__)

#: Most characters that are kept of all that the workers of a run print and log.
LOG_CHARS = 64 << 20
#: Greater than the number of any block.
_BEYOND = 1 << 62


class Inbox(Protocol):
    """The result stream of a run in Redis: blocks and wills whose signature was verified.

    A will says which iterations a worker process that has ended did not start.
    """

    run_id: str

    def read(self, wait_s: float) -> list[tuple[str, Block | Will | None]]:
        """Return the oldest entries with their ids, waiting up to `wait_s` seconds for the first.

        None instead of a message: it is not of this run, or not verified. Raises StoreUnreachable,
        StoreError.
        """

    def refuse(self, reason: str) -> None:
        """Count a message that cannot be used, under `reason`."""

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries from the stream, by id. Raises StoreUnreachable, StoreError."""


class Receiver:
    """Moves the result blocks of all workloads of a run from Redis to disk, and counts them.

    A block counts once, even if it is sent again or this process is restarted.
    """

    def __init__(self, channel: Inbox, accounts: Accounts, directory: RunDirectory) -> None:
        self._channel = channel
        self._accounts = accounts
        self._directory = directory
        #: Ids of entries of the last read: handled, on disk if need be, and not deleted yet.
        self._done: list[str] = []

    def receive(self, wait_s: float) -> list[Arrival]:
        """Read blocks, discard duplicates, write new blocks to disk, count them, apply wills.

        Waits up to `wait_s` seconds for the first entry of the stream; the next call deletes the
        entries from Redis. Returns counts of new iterations by membership and workload, with a
        `problem` if a block is unreadable, which is also logged. Malformed entries are refused and
        counted. Raises StoreUnreachable, StoreError; StorageError if the disk is full or fails.
        """
        if self._done:
            self._channel.delete(self._done)
            self._done = []
        read = self._channel.read(wait_s)
        fresh: dict[tuple[str, int], Block] = {}
        for _, message in read:
            if isinstance(message, Block) and self._fits(message):
                key = (message.membership, message.number)
                if key in fresh or self._came_before(message):
                    self._count_duplicate(message)
                else:
                    fresh[key] = message
        arrivals = self._take(list(fresh.values()))
        for _, message in read:
            if isinstance(message, Will):
                self._execute(message)
        self._done = [entry for entry, _ in read]
        for arrival in arrivals:
            if arrival.problem:
                LOG.warning(
                    "worker %s: its results cannot be read, and it gets no more work: %s; "
                    "install the coordinator's version of osbench there",
                    self._name(arrival.mid),
                    arrival.problem,
                )
        return arrivals

    def _fits(self, block: Block) -> bool:
        fits = block.run == self._channel.run_id and _well_formed(block)
        if fits:
            member = self._accounts.memberships.get(block.membership)
            fits = member is None or member.incarnation == block.incarnation
        if not fits:
            self._channel.refuse("malformed")
        return fits

    def _came_before(self, block: Block) -> bool:
        member = self._accounts.memberships.get(block.membership)
        return member is not None and member.has(block.number)

    def _count_duplicate(self, block: Block) -> None:
        results = self._accounts.results.get(block.workload)
        if results is not None:
            results.duplicates += 1

    def _take(self, blocks: list[Block]) -> list[Arrival]:
        """Write blocks to disk and sync, then count them. Raises StorageError."""
        if not blocks:
            return []
        # a worker describes a failure in the first block that has it
        blocks.sort(key=lambda block: block.number)
        named = [self._named(block) for block in blocks]
        # stored in the order of counting: a replay gives the same result
        ordered = [self._bounded(block) for group in groups(named) for block in group]
        self._directory.keep(block.body() for block in ordered)
        return self._accounts.take(ordered)

    def _bounded(self, block: Block) -> Block:
        """Return a block; once `LOG_CHARS` are stored, its log is only counted, in `log_cut`."""
        if not block.log or self._accounts.log_chars < LOG_CHARS:
            return block
        return replace(block, log=[], log_cut=block.log_cut + len(block.log))

    def _named(self, block: Block) -> Block:
        """Return a block with the name of its membership as incarnation.

        Writes a membership that is not known yet to the journal first.
        """
        mid, incarnation = block.membership, block.incarnation
        if mid not in self._accounts.memberships:
            record = self._accounts.enrolment(mid, incarnation)
            self._directory.decide([record])
            self._accounts.apply(record)
        name = self._name(mid)
        return block if name == incarnation else replace(block, incarnation=name)

    def _name(self, mid: str) -> str:
        return self._accounts.memberships[mid].name

    def _execute(self, will: Will) -> None:
        """Put iterations that an ended worker process did not start back into the plan.

        Its will says which. The change goes to the journal first. A will that is malformed or of
        another run is counted as refused; a repeated or unknown will does nothing. Raises
        StorageError.
        """
        if will.run != self._channel.run_id or not _well_formed_will(will):
            self._channel.refuse("malformed")
            return
        records = self._accounts.execution(will)
        if records:
            self._directory.decide(records)
        for record in records:
            self._accounts.apply(record)


def _well_formed(block: Block) -> bool:
    """Return whether the fields of a block have the right types and ranges, not its columns."""
    texts = (block.membership, block.incarnation)
    counts = (block.want_ns, block.cut, block.started_late, block.log_cut, *_list(block.voids))
    return (
        all(isinstance(text, str) and text for text in texts)
        and isinstance(block.number, int)
        and 0 < block.number < _BEYOND
        and isinstance(block.workload, int)
        and isinstance(block.columns, dict)
        and all(isinstance(part, list) for part in _lists(block))
        and isinstance(block.lags, bytes)
        and all(isinstance(count, int) and 0 <= count < _BEYOND for count in counts)
        and isinstance(block.final, bool)
    )


def _lists(block: Block) -> tuple[object, ...]:
    return (
        block.returned,
        block.failures,
        block.voids,
        block.blocked,
        block.asides,
        block.log,
        block.life,
    )


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _well_formed_will(will: Will) -> bool:
    counts = (will.workload, will.seq, will.number)
    return (
        isinstance(will.membership, str)
        and all(isinstance(count, int) and abs(count) < _BEYOND for count in counts)
        and (will.due_ns is None or (isinstance(will.due_ns, int) and abs(will.due_ns) < _BEYOND))
    )
