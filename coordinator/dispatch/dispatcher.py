"""Cuts batches, journals and publishes them, and takes work away again."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from osbench.common.errors import StoreAway
from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.common.plugin.runner import Step
from osbench.common.protocol.messages import Batch, Specification
from osbench.coordinator.data_file import DataFile
from osbench.coordinator.dispatch import batch_sizes
from osbench.coordinator.dispatch.arrivals import (
    Dues,
    Ints,
    deal,
    deal_numbers,
    nanoseconds,
    slices,
)
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.run.state import RunState

LOG = logging.getLogger(__name__)

#: A worker that has been idle for so long, with batches under way to it, did not get them.
IDLE_S = 3.0
#: Arrivals are given out at the latest so long before they are due, seconds.
AHEAD_S = 13.0


class Dispatch:
    """The placing of one workload's iterations."""

    def __init__(
        self,
        state: RunState,
        book: Book,
        specification: Specification,
        data: DataFile | None = None,
    ) -> None:
        self._state = state
        self._ledger = book.ledger
        self._spec = specification
        self._data = data
        self._limit = data.batch_limit if data is not None else None
        self._dues = Dues()
        #: Arrivals planned and not yet given out.
        self._coming = np.empty(0, np.int64)
        #: Arrivals planned after the warm-up, and when the first and last of them are due.
        self._arrivals = self._first_due = self._last_due = 0
        self._warm_ns = book.warmup_ns
        #: Batches whose sending failed: to be taken away before anything else.
        self.doubtful: list[int] = []
        self._sized: set[str] = set()

    @property
    def planned(self) -> int:
        """Numbers given out (closed) or arrivals planned (open)."""
        return self._ledger.allotted + len(self._coming)

    @property
    def rate_planned(self) -> float | None:
        """Arrivals a second from the first due instant after the warm-up to the last."""
        if self._arrivals < 2 or self._last_due <= self._first_due:
            return None
        return (self._arrivals - 1) / ((self._last_due - self._first_due) / 1e9)

    def wants(self, step: Step) -> bool:
        """There is work that could be placed."""
        return self._ledger.available(step.budget) != 0

    def place(
        self, step: Step, crew: Sequence[Member], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Give workers what they should have now."""
        if self.doubtful:
            self._take(self.doubtful)
            self.doubtful = []
        crew = [member for member in crew if member.share]
        if self._spec.open:
            self._send(self._open_batches(step, crew, elapsed_s, stop_s))
        else:
            self._resize(crew)
            self._level(step, crew)
            self._send(self._closed_batches(step, crew))

    # closed

    def _closed_batches(self, step: Step, crew: Sequence[Member]) -> list[Batch]:
        found = self._blind_batches(step, crew)
        known = [member for member in crew if member.share and member.rate]
        held = {member: self._ledger.outstanding(member.incarnation) for member in known}
        # a batch each in turn: one worker must not take all that is left
        while known:
            for member in list(known):
                left = self._ledger.available(step.budget)
                size = batch_sizes.batch_size(member, left, len(crew), self._limit)
                room = batch_sizes.room(member, held[member])
                if left == 0 or room <= 0 or (room < size and held[member] > member.share):
                    known.remove(member)
                    continue
                numbers = self._ledger.allot(size, step.budget)
                held[member] += len(numbers)
                found.append(self._cut(member, numbers))
        return found

    def _blind_batches(self, step: Step, crew: Sequence[Member]) -> list[Batch]:
        users = sum(member.share for member in crew) or 1
        plan = self._ledger.available(step.budget)
        sizes = []
        for member in crew:
            if member.rate or self._ledger.outstanding(member.incarnation):
                continue
            fair = None if plan is None else math.ceil(plan * member.share / users)
            sizes.append(
                [
                    (member, size)
                    for size in batch_sizes.blind_sizes(member.share, fair, self._limit)
                ]
            )
        found: list[Batch] = []
        # small ones of all workers first: the numbers that start are then without large gaps
        for member, size in (one for turn in zip_longest(*sizes) for one in turn if one):
            numbers = self._ledger.allot(size, step.budget)
            if numbers:
                found.append(self._cut(member, numbers))
        return found

    def _resize(self, crew: Sequence[Member]) -> None:
        """Once a worker's speed is known, blind batches that are too large are taken back."""
        for member in crew:
            if not member.rate or member.incarnation in self._sized:
                continue
            self._sized.add(member.incarnation)
            limit = batch_sizes.too_large(member)
            large = [
                number
                for number in self._ledger.open_batches(member.incarnation)
                if len(self._ledger.batches[number].numbers) > limit
            ]
            self._take(large)

    def _level(self, step: Step, crew: Sequence[Member]) -> None:
        """At the end of the plan, move what nobody has claimed to workers that are idle."""
        if self.wants(step):
            return
        stock = {m: self._ledger.outstanding(m.incarnation) for m in crew if m.share}
        idle = [m for m, held in stock.items() if held < m.share]
        if not idle or len(stock) < 2:
            return
        for member in sorted(stock, key=lambda m: stock[m], reverse=True):
            if stock[member] <= member.share:
                return
            batches = self._ledger.open_batches(member.incarnation)
            if batches:
                self._take(batches[: max(1, len(batches) // 2)])
                return

    # open

    def _open_batches(
        self, step: Step, crew: Sequence[Member], elapsed_s: float, stop_s: float | None
    ) -> list[Batch]:
        self._drop_late(elapsed_s)
        found: list[Batch] = []
        if crew and self._ledger.pool:
            moving = self._ledger.allot(len(self._ledger.pool), 0)
            for member, numbers in zip(crew, deal_numbers(moving, len(crew)), strict=True):
                if numbers:
                    found.append(self._cut(member, numbers))
        dues = self._due(step, elapsed_s, stop_s)
        warm = dues[dues >= self._warm_ns]
        if len(warm):
            if not self._arrivals:
                self._first_due = int(warm[0])
            self._last_due = int(warm[-1])
            self._arrivals += len(warm)
        for part in slices(dues):
            found.extend(self._deal(part, crew))
        return found

    def _due(self, step: Step, elapsed_s: float, stop_s: float | None) -> Ints:
        """The instants of the arrivals that are to be given out now.

        Runners plan a few more with every turn; while they are far ahead they are left to
        become a batch that is worth its message.
        """
        coming = np.concatenate((self._coming, nanoseconds(step.arrivals)))
        if stop_s is not None:
            coming = coming[coming < int(stop_s * 1e9)]
        far = len(coming) and coming[0] > int((elapsed_s + AHEAD_S) * 1e9)
        now, self._coming = (coming[:0], coming) if far else (coming, coming[:0])
        return now

    def _deal(self, dues: Ints, crew: Sequence[Member]) -> list[Batch]:
        first = self._ledger.allotted + 1
        hands = deal(dues, max(1, len(crew)), first)
        # a worker's arrivals of a slice have one run of numbers: the ledger stays small
        self._dues.add(first, np.concatenate(hands))
        found = []
        for at, hand in enumerate(hands):
            if not len(hand):
                continue
            numbers = self._ledger.allot_new(len(hand))
            if crew:
                found.append(self._cut(crew[at], numbers))
            else:
                self._ledger.pool.update(numbers)
        return found

    def _drop_late(self, elapsed_s: float) -> None:
        if not self._ledger.pool:
            return
        numbers = self._ledger.pool.members()
        limit = int((elapsed_s - self._spec.max_lag_s) * 1e9)
        late = Intervals.of(numbers[self._dues.of(numbers) < limit])
        if late:
            self._ledger.drop(late, Outcome.DROPPED_WORKER_LOST)
            self._state.directory.decide(
                [{"do": "drop", "workload": self._spec.workload, "numbers": list(late)}]
            )

    # batches

    def _cut(self, member: Member, numbers: Intervals) -> Batch:
        dues = b""
        if self._spec.open:
            dues = self._dues.of(numbers.members()).astype("<i8").tobytes()
        batch = Batch(
            run=self._state.channel.run_id,
            epoch=self._state.channel.epoch,
            incarnation=member.incarnation,
            workload=self._spec.workload,
            batch=next(self._state.batch_ids),
            intervals=list(numbers),
            dues=dues,
            rows=self._data.sealed(numbers) if self._data is not None else b"",
        )
        self._ledger.cut(batch.batch, member.incarnation, numbers)
        return batch

    def _send(self, batches: Sequence[Batch]) -> None:
        if not batches:
            return
        self._state.directory.decide(
            {
                "do": "cut",
                "batch": batch.batch,
                "worker": batch.incarnation,
                "workload": batch.workload,
                "intervals": batch.intervals,
            }
            for batch in batches
        )
        for at, batch in enumerate(batches):
            try:
                self._state.channel.publish(batch)
            except StoreAway:
                # whether it was delivered is not known: revoke it before its numbers move
                self.doubtful.extend(rest.batch for rest in batches[at:])
                raise

    # taking away

    def _take(self, batches: Sequence[int]) -> None:
        """Revoke batches; what nobody has claimed goes back to the pool."""
        asked = [number for number in batches if number in self._ledger.batches]
        if not asked:
            return
        answers = self._state.channel.store.take_away(asked)
        won = [number for number, mine in zip(asked, answers, strict=True) if mine]
        if won:
            self._state.directory.decide([{"do": "revoked", "batches": won}])
        for number, mine in zip(asked, answers, strict=True):
            if mine:
                self._ledger.revoked(number)
            else:
                self._ledger.claimed(number)

    def take_away(self, incarnation: str) -> None:
        """Revoke all open batches of a worker that was given up."""
        self._take([n for n, b in self._ledger.batches.items() if b.worker == incarnation])

    def rescue(self, members: Sequence[Member]) -> None:
        """Take back what a worker that is idle was sent: the message never reached it."""
        for member in members:
            if member.idle_s < IDLE_S:
                continue
            stuck = self._ledger.open_batches(member.incarnation)
            if stuck:
                LOG.warning("batches %s did not reach worker %s", stuck, member.incarnation)
                self._take(stuck)
                member.idle_s = 0.0

    def take_back_unclaimed(self, members: Sequence[Member]) -> None:
        """The load is over: what was not claimed will not start."""
        self._take(self.doubtful)
        self.doubtful = []
        for member in members:
            self._take(self._ledger.open_batches(member.incarnation))

    def drain_leaving(self, members: Sequence[Member]) -> None:
        """What workers that leave have not claimed goes to others."""
        for member in members:
            if member.leaving:
                self._take(self._ledger.open_batches(member.incarnation))
