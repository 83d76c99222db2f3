"""Takes in what workers send: one reader of the result stream for all workloads of a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from osbench.common.errors import Untrusted
from osbench.common.protocol.messages import Block, Fence
from osbench.coordinator.fleet.pool import Fleet
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.results.merging import groups, join
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel

LOG = logging.getLogger(__name__)


class Reader:
    """Routes result blocks to the books of their workloads, and gives up workers by fences."""

    def __init__(self, channel: Channel, fleet: Fleet, directory: RunDirectory) -> None:
        self._channel = channel
        self._fleet = fleet
        self._directory = directory
        #: By workload number; kept until the run closes.
        self.books: dict[int, Book] = {}
        #: Fences that were sent and not yet read, by nonce.
        self._fencing: dict[str, Member] = {}
        #: Given up, their work not yet taken away.
        self.buried: list[Member] = []

    def take_in(self, wait_s: float) -> None:
        """Read, verify, drop duplicates, write to disk, count: in this order."""
        fresh: list[Block] = []
        fences: list[tuple[int, Fence]] = []
        seen: dict[str, int] = {}
        for message in self._channel.read(wait_s):
            if isinstance(message, Fence):
                fences.append((len(fresh), message))
                continue
            member = self._fleet.members.get(message.incarnation)
            book = self.books.get(message.workload)
            if member is None or book is None:
                self._channel.refused += 1
            elif message.number <= max(member.blocks, seen.get(message.incarnation, 0)):
                book.duplicates += 1
            else:
                seen[message.incarnation] = message.number
                fresh.append(message)
        self._directory.keep(block.body() for block in fresh)
        for name, number in seen.items():
            self._fleet.members[name].blocks = number
        at = 0
        for stop, fence in [*fences, (len(fresh), None)]:
            for group in groups(fresh[at:stop]):
                self._count(group)
            at = stop
            if fence is not None:
                self._fenced(fence)

    def _count(self, blocks: Sequence[Block]) -> None:
        """Count blocks of one worker and workload."""
        workload = blocks[0].workload
        book, member = self.books[workload], self._fleet.members[blocks[0].incarnation]
        try:
            ran, busy_s = book.take(join(blocks))
        except Untrusted as error:
            if len(blocks) > 1:
                for block in blocks:
                    self._count([block])
                return
            LOG.warning("worker %s: %s", member.incarnation, error)
            book.refused += 1
            # which of its numbers it has reported cannot be known any more
            member.garbled = True
            return
        if workload == member.workload:
            member.measured(ran, busy_s)

    def give_up(self, member: Member) -> None:
        """Send the fence behind which a silent worker's results are late or stale."""
        if member in self._fencing.values():
            return
        name = member.incarnation
        LOG.warning("worker %s %s and is given up", name, member.complaint)
        self._directory.decide([{"do": "fence", "worker": name}])
        self._fencing[self._channel.fence(name)] = member
        member.doomed = True

    def _fenced(self, fence: Fence) -> None:
        member = self._fencing.pop(fence.nonce, None)
        if member is None:
            return
        member.fenced = True
        member.lost_share = member.share
        member.target = member.share = member.held = 0
        for book in self.books.values():
            book.ledger.fence(member.incarnation)
        self.buried.append(member)

    def unsettled(self, workload: int) -> bool:
        """A worker of the workload is being given up."""
        return any(
            member.workload == workload for member in (*self._fencing.values(), *self.buried)
        )
