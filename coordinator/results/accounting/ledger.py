"""The ledger of one workload: which member has each iteration number, and how each iteration ended.

planned -> granted -> ok | failed | timed_out; or dropped, lost, not_started.

A granted number is open at its member (one stay of a worker process in the run) until the member
reports it or returns it unstarted: a silent member may have started it. If the workload is
idempotent, the number may be open at several members. One interval set holds all settled numbers,
and counts show their states: a set for each state would grow with every failure.

Does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import DROP_REASONS, RAN, Outcome
from osbench.coordinator.results.accounting.totals import Accounting

Ints = NDArray[np.int64]
#: Greater than every iteration number.
BEYOND = 1 << 62


@dataclass(slots=True)
class _Holding:
    """Numbers that a member was granted and has neither reported nor returned unstarted."""

    open: Intervals = field(default_factory=Intervals)
    #: Numbers by batch, oldest first, without returned ones; some were reported.
    batches: dict[int, Intervals] = field(default_factory=dict)
    #: Open here, and others may start them too.
    released: Intervals = field(default_factory=Intervals)
    #: Granted here while they were open elsewhere.
    again: Intervals = field(default_factory=Intervals)
    lost: bool = False
    #: Some of its blocks cannot be read, or are lost: open iterations may have ended.
    damaged: bool = False

    @property
    def suspect(self) -> bool:
        """Return whether the member's open numbers may never be reported: it is lost or damaged."""
        return self.lost or self.damaged

    def take(self, numbers: Iterable[Interval]) -> Intervals:
        """Remove `numbers` from the member's open ones; return the removed ones.

        Numbers that were not open are ignored.
        """
        found = self.open.intersection(numbers)
        self.open.subtract(found)
        if self.released:
            self.released.subtract(found)
        return found

    def forget_over(self) -> None:
        """Delete the oldest batches that have no open number, up to the first that has one."""
        while self.batches:
            oldest = next(iter(self.batches))
            if self.open.meets(self.batches[oldest]):
                return
            del self.batches[oldest]


class Ledger:
    """Accounts for the iteration numbers of a workload, from 1.

    A member is named by its membership: one stay of a worker process in the run.
    """

    def __init__(self, *, idempotent: bool = False) -> None:
        #: Iterations that may have started may be started again.
        self.idempotent = idempotent
        self._next = 1
        #: Numbers that were given out and are free to be granted (again).
        self.pool = Intervals()
        #: Numbers from `allot` that are not in a batch yet.
        self._placing = Intervals()
        self._held: dict[str, _Holding] = {}
        #: All that may be open at more than one member, or open and in the pool.
        self._shared = Intervals()
        self._settled = Intervals()
        self._counts = [0] * (len(Outcome) + 1)
        self._closed = False
        self._plan = 0
        #: Numbers that may have been started and were not reported; filled by `close`.
        self._lost = Intervals()
        self._not_started = 0
        self._unused = 0
        self.reruns = 0
        self.late = 0
        self.stale = 0

    # giving out

    @property
    def allotted(self) -> int:
        """Number of iterations given out so far: the highest number."""
        return self._next - 1

    @property
    def settled(self) -> int:
        """Number of iterations in a final state, or removed from the plan."""
        return len(self._settled) + self._unused

    @property
    def decided(self) -> int:
        """Number of iterations that no worker will start any more.

        They are settled, or open only at suspect members (lost or damaged).
        """
        return self.settled + len(self._suspect())

    def gone(self, after: int, until: int) -> int:
        """Return how many numbers in (`after`, `until`] are open only at suspect members."""
        return len(self._suspect().within(after + 1, until + 1))

    def _suspect(self) -> Intervals:
        found = Intervals()
        for held in self._held.values():
            if held.suspect:
                found.update(held.open)
        if found:
            found.subtract(self._settled.intersection(found))
            found.subtract(self.pool)
            found.subtract(self._placing)
            for held in self._held.values():
                if not held.suspect:
                    found.subtract(held.open)
        return found

    def available(self, budget: int | None) -> int | None:
        """Return how many numbers can be granted now: the pool, and new ones up to `budget`.

        If `budget` is None, there is no limit, and None is returned.
        """
        if budget is None:
            return None
        return len(self.pool) + max(0, budget - self.allotted)

    def allot(self, count: int, budget: int | None, member: str = "") -> Intervals:
        """Take up to `count` numbers for `cut` to grant to `member`: pooled first, then new.

        `budget`: highest number to give out, None: no limit. Numbers that are open at `member` stay
        in the pool.
        """
        own = Intervals()
        if self._shared and member in self._held:
            own = self._held[member].open.intersection(self.pool)
            self.pool.subtract(own)
        numbers = self.pool.take(count)
        self.pool.update(own)
        self._placing.update(numbers)
        fresh = count - len(numbers)
        if budget is not None:
            fresh = min(fresh, budget - self.allotted)
        numbers.update(self.allot_new(fresh))
        return numbers

    def allot_new(self, count: int) -> Intervals:
        """Take `count` new numbers for `cut` to grant, whatever the budget; none if 0 or less."""
        numbers = Intervals([(self._next, self._next + count)])
        self._next += len(numbers)
        self._placing.update(numbers)
        return numbers

    def allot_up_to(self, number: int) -> None:
        """Count all numbers up to `number` as given out; put new ones in the pool.

        Does nothing if `number` was given out before.
        """
        if number >= self._next:
            self.pool.add(self._next, number + 1)
            self._next = number + 1

    def cut(self, member: str, seq: int, numbers: Intervals) -> None:
        """Grant numbers to a member as its batch `seq`; sequence numbers grow from batch to batch.

        Numbers leave the pool; numbers that are open at another member count as reruns.
        """
        for _, end in numbers:
            self.allot_up_to(end - 1)
        self.pool.subtract(numbers)
        self._placing.subtract(numbers)
        held = self._held.setdefault(member, _Holding())
        if self._shared:
            again = self._elsewhere(member, numbers)
            held.again.update(again)
            self.reruns += len(again)
        held.batches[seq] = numbers.copy()
        held.open.update(numbers)

    # places of numbers

    def outstanding(self, member: str) -> int:
        """Return how many numbers are open at a member; 0 once the ledger is closed."""
        held = self._held.get(member)
        return len(held.open) if held is not None and not self._closed else 0

    @property
    def open(self) -> bool:
        """Return whether any member has open numbers, and the ledger is not closed."""
        return not self._closed and any(held.open for held in self._held.values())

    def open_batches(self, member: str) -> list[int]:
        """Return the sequence numbers of a member's batches with open numbers, newest first."""
        held = self._held.get(member, _Holding())
        found = [seq for seq, numbers in held.batches.items() if held.open.meets(numbers)]
        return found[::-1]

    def batch(self, member: str, seq: int) -> Intervals:
        """Return the open numbers of a member's batch `seq`; empty if the batch is not known."""
        held = self._held.get(member, _Holding())
        return held.open.intersection(held.batches.get(seq, ()))

    def behind(self, member: str, seq: int, number: int) -> Intervals:
        """Return a member's open numbers of batches after `seq`, and above `number` in `seq`."""
        held = self._held.get(member, _Holding())
        found = Intervals()
        for one, numbers in held.batches.items():
            if one > seq:
                found.update(numbers)
            elif one == seq:
                found.update(numbers.within(number + 1, BEYOND))
        return held.open.intersection(found)

    def held(self, member: str) -> Intervals:
        """Return a copy of all numbers that are open at a member; empty for an unknown one."""
        return self._held.get(member, _Holding()).open.copy()

    def _elsewhere(self, member: str, numbers: Iterable[Interval]) -> Intervals:
        found = Intervals()
        for name, held in self._held.items():
            if name != member:
                found.update(held.open.intersection(numbers))
        return found

    def _kept_elsewhere(self, member: str, numbers: Intervals) -> Intervals:
        """Return the given numbers that another member has open without sharing them.

        A member shares numbers after `offer_again`.
        """
        found = Intervals()
        for name, held in self._held.items():
            if name != member:
                kept = held.open.intersection(numbers)
                kept.subtract(held.released)
                found.update(kept)
        return found

    # reports and returns

    def report(self, member: str, numbers: Ints, outcomes: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Settle the iterations of a member's result rows; return for each row whether it counts.

        A row counts if its member has the number open and the number is not settled; the first row
        decides, also if it is a drop. Other rows are counted as `stale`. Rows that count are also
        `late` if their member is lost, or the ledger is closed.
        """
        fresh = Intervals.of(numbers)
        held = self._held.get(member)
        expected = held.take(fresh) if held is not None else Intervals()
        if held is not None and expected:
            held.forget_over()
            expected.subtract(self._settled.intersection(expected))
            if self._shared:
                self._report_shared(held, expected, numbers, outcomes)
        if len(expected) == len(numbers):
            accepted = np.ones(len(numbers), np.bool_)
        else:
            accepted = np.isin(numbers, expected.members())
            if len(fresh) < len(numbers):
                # a number twice in one block: its first row counts
                first = np.zeros(len(numbers), np.bool_)
                first[np.unique(numbers, return_index=True)[1]] = True
                accepted &= first
            self.stale += len(numbers) - len(expected)
        if self._closed or (held is not None and held.lost):
            self.late += len(expected)
        if self._closed:
            self._lost.subtract(expected)
        self._settled.update(expected)
        for code, count in enumerate(np.bincount(outcomes[accepted]).tolist()):
            if count:
                self._counts[code] += count
        return accepted

    def _report_shared(
        self, held: _Holding, expected: Intervals, numbers: Ints, outcomes: NDArray[np.uint8]
    ) -> None:
        """Uncount reruns that were dropped; remove the settled numbers `expected` from the pool."""
        known, first = np.unique(numbers, return_index=True)
        dropped = Intervals.of(known[outcomes[first] > Outcome.TIMED_OUT]).intersection(expected)
        not_again = held.again.intersection(dropped)
        self.reruns -= len(not_again)
        held.again.subtract(not_again)
        self.pool.subtract(self.pool.intersection(expected))

    def give_back(self, member: str, numbers: Iterable[Interval]) -> None:
        """Move a member's unstarted numbers to the pool; numbers not open there are ignored.

        Numbers that another member has open without sharing them stay with that member. After the
        close, count the numbers as not started instead of lost.
        """
        held = self._held.get(member)
        if held is None:
            return
        back = held.take(numbers)
        if not back:
            return
        # they may be granted to the same member again, in another batch
        for batch in held.batches.values():
            batch.subtract(back)
        held.forget_over()
        not_again = held.again.intersection(back)
        held.again.subtract(not_again)
        self.reruns -= len(not_again)
        back.subtract(self._settled.intersection(back))
        if self._shared and self._closed:
            back.subtract(self._elsewhere(member, back))
        elif self._shared:
            back.subtract(self._kept_elsewhere(member, back))
        if self._closed:
            self._lost.subtract(back)
            self._not_started += len(back)
        else:
            self.pool.update(back)

    def reject(self, member: str, seqs: Iterable[int]) -> None:
        """Move the open numbers of a member's batches `seqs`, which it refused, to the pool."""
        for seq in seqs:
            self.give_back(member, self.batch(member, seq))

    def consent(self, member: str) -> None:
        """Move all open numbers of a member to the pool: it has reported everything it started."""
        self.give_back(member, self.held(member))

    # members without heartbeats

    def mark_lost(self, member: str) -> None:
        """Mark a member as lost: results counted while it is lost are late."""
        self._held.setdefault(member, _Holding()).lost = True

    def heard(self, member: str) -> None:
        """Unmark a lost member that sends heartbeats again: its results are not late any more."""
        self._held.setdefault(member, _Holding()).lost = False

    def damaged(self, member: str) -> None:
        """Mark a member as damaged: some of its blocks are lost or cannot be read.

        Its open numbers are suspect: they may have ended and never be reported.
        """
        self._held.setdefault(member, _Holding()).damaged = True

    def offer_again(self, member: str) -> None:
        """Put a member's open numbers in the pool, although they stay open there.

        For idempotent workloads: others may start the numbers, too. Numbers that another member has
        open without sharing them stay out of the pool. After the close it does nothing.
        """
        held = self._held.get(member)
        if held is None or self._closed:
            return
        fresh = held.open.copy()
        fresh.subtract(held.released)
        fresh.subtract(self._settled.intersection(fresh))
        held.released.update(fresh)
        self._shared.update(fresh)
        fresh.subtract(self._kept_elsewhere(member, fresh))
        self.pool.update(fresh)

    def drop(self, numbers: Intervals, why: Outcome) -> None:
        """Settle arrivals as dropped for the reason `why`: no member can start them in time.

        Numbers that are settled already keep their state.
        """
        self.pool.subtract(numbers)
        self._placing.subtract(numbers)
        dropped = numbers.copy()
        dropped.subtract(self._settled.intersection(dropped))
        self._settled.update(dropped)
        self._counts[why] += len(dropped)

    # the end

    def release_unused(self) -> None:
        """Remove unstarted numbers from pool and plan, after a duration has ended the load.

        Numbers that a member may have started stay. Does nothing after the close.
        """
        if self._closed:
            return
        self._gather()
        unused = self.pool.copy()
        if self._shared:
            unused.subtract(self._elsewhere("", unused))
        self._unused += len(unused)
        self.pool.subtract(unused)

    def _gather(self) -> None:
        """Move numbers that were allotted and never granted to the pool."""
        self.pool.update(self._placing)
        self._placing = Intervals()

    def close(self, budget: int | None) -> None:
        """Settle all remaining numbers: open ones as lost, others as not started.

        `budget`: iterations of the plan, None if a duration ended it. Closing again changes
        nothing.
        """
        if self._closed:
            return
        self._gather()
        for held in self._held.values():
            held.open.subtract(self._settled.intersection(held.open))
            self._lost.update(held.open)
        self.pool.subtract(self._lost)
        self._not_started = len(self.pool)
        self._plan = self.allotted - self._unused
        if budget is not None and budget > self.allotted:
            self._not_started += budget - self.allotted
            self._plan = budget - self._unused
        self._closed = True
        sums = self.accounting()
        assert sums.settled == sums.planned, f"the ledger does not add up: {sums}"

    @property
    def closed(self) -> bool:
        """Return whether `close` was called: every iteration has its final state."""
        return self._closed

    def accounting(self, *, duplicates: int = 0, refused: int = 0) -> Accounting:
        """Return the counts by state so far; they sum to the plan once the ledger is closed.

        `duplicates` and `refused` are counts of messages, which are copied to the result.
        """
        counts = self._counts
        drops = {
            reason: counts[outcome] for outcome, reason in DROP_REASONS.items() if counts[outcome]
        }
        ran = {outcome.name.lower(): counts[outcome] for outcome in RAN}
        dropped = sum(drops.values())
        return Accounting(
            planned=self._plan if self._closed else self.allotted - self._unused,
            dropped=dropped,
            # a result that comes after all takes its number out of the lost ones
            lost=len(self._lost),
            not_started=self._not_started,
            drops=drops,
            reruns=self.reruns,
            late=self.late,
            stale=self.stale,
            duplicates=duplicates,
            refused=refused,
            **ran,
        )
