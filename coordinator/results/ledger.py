"""The ledger of one workload: which iteration is where, and how each ended. Decides; does no I/O.

planned -> batched -> claimed -> ok | failed | timed_out; or dropped, lost, not_started.

One interval set holds what has been settled, counts say how: a set for each state would grow
with every failure. Work that moves gets new batch ids; only numbers whose batch was revoked
before anybody claimed it move, or suspect ones where the workload is idempotent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.intervals import Interval, Intervals
from osbench.common.outcomes import DROP_REASONS, RAN, Outcome
from osbench.coordinator.results.totals import Accounting

Ints = NDArray[np.int64]


@dataclass(slots=True)
class OpenBatch:
    """A batch that may still start or report."""

    worker: str
    #: Those that its worker has neither given back nor, as far as looked at, reported.
    numbers: Intervals
    #: Known to be claimed: it cannot be taken away.
    claimed: bool = False


class Ledger:
    """Iteration numbers from 1. Workers are named by incarnation."""

    def __init__(self, *, idempotent: bool = False) -> None:
        self._idempotent = idempotent
        self._next = 1
        #: Given out once, to be placed (again).
        self.pool = Intervals()
        self.batches: dict[int, OpenBatch] = {}
        #: Batch ids by worker, oldest first; some may be over.
        self._order: dict[str, deque[int]] = {}
        self._outstanding: dict[str, Intervals] = {}
        #: Perhaps started, by workers that were fenced.
        self._suspect = Intervals()
        #: Suspect ones that were put back into the pool.
        self._rerun = Intervals()
        self._settled = Intervals()
        self._fenced: set[str] = set()
        self._counts = [0] * (len(Outcome) + 1)
        self._closed = False
        self._plan = 0
        self._not_started = 0
        self._unused = 0
        self.reruns = 0
        self.late = 0
        self.stale = 0

    # giving out

    @property
    def allotted(self) -> int:
        """Numbers given out so far."""
        return self._next - 1

    @property
    def settled(self) -> int:
        """Numbers in a final state, or out of the plan."""
        return len(self._settled) + self._unused

    @property
    def decided(self) -> int:
        """Settled numbers and suspect ones: nothing will be started for them any more."""
        return self.settled + len(self._suspect)

    def available(self, budget: int | None) -> int | None:
        """Numbers that can be placed now; None is without end."""
        if budget is None:
            return None
        return len(self.pool) + max(0, budget - self.allotted)

    def allot(self, count: int, budget: int | None) -> Intervals:
        """Up to `count` numbers: first those to be placed again, then new ones."""
        numbers = self.pool.take(count)
        fresh = count - len(numbers)
        if budget is not None:
            fresh = min(fresh, budget - self.allotted)
        numbers.update(self.allot_new(fresh))
        return numbers

    def allot_new(self, count: int) -> Intervals:
        """`count` numbers that were never given out; none where count is not positive."""
        numbers = Intervals([(self._next, self._next + count)])
        self._next += len(numbers)
        return numbers

    def cut(self, batch: int, worker: str, numbers: Intervals) -> None:
        """Numbers from `allot` go to a worker as a batch with a new id."""
        self.batches[batch] = OpenBatch(worker, numbers.copy())
        self._order.setdefault(worker, deque()).append(batch)
        self._outstanding.setdefault(worker, Intervals()).update(numbers)

    def outstanding(self, worker: str) -> int:
        """Numbers that a worker has and has not reported."""
        found = self._outstanding.get(worker)
        return len(found) if found is not None else 0

    @property
    def open(self) -> bool:
        """Somebody may still start or report something."""
        return any(self._outstanding.values())

    def open_batches(self, worker: str) -> list[int]:
        """Batches of a worker that are not known to be claimed or over, newest first."""
        left = self._outstanding.get(worker, Intervals())
        found = [
            number
            for number in self._order.get(worker, ())
            if number in self.batches and left.intersection(self.batches[number].numbers)
        ]
        return [number for number in reversed(found) if not self.batches[number].claimed]

    def _forget_over(self, worker: str) -> None:
        """Drop a worker's oldest batches once all their numbers are reported or given back."""
        left, order = self._outstanding[worker], self._order[worker]
        while order:
            batch = self.batches.get(order[0])
            if batch is not None and left.intersection(batch.numbers):
                return
            self.batches.pop(order.popleft(), None)

    # what comes back

    def report(self, worker: str, numbers: Ints, outcomes: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Settle the rows of a block; True for each row that counts.

        Rows of a fenced worker count (as late) where no other worker has settled the number;
        everything else that comes twice is stale.
        """
        fresh = Intervals.of(numbers)
        gone = worker in self._fenced or self._closed
        expected = self._doubtful(worker, fresh) if gone else self._expected(worker, fresh)
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
        if gone:
            self.late += len(expected)
        self._settled.update(expected)
        for code, count in enumerate(np.bincount(outcomes[accepted]).tolist()):
            if count:
                self._counts[code] += count
        return accepted

    def _expected(self, worker: str, fresh: Intervals) -> Intervals:
        """Those of some reported numbers that the worker has and no other has settled."""
        known = self._outstanding.get(worker)
        if known is None:
            return Intervals()
        expected = known.intersection(fresh)
        known.subtract(expected)
        self._forget_over(worker)
        # a first start may have settled it late, while the rerun was under way
        expected.subtract(self._settled.intersection(expected))
        return expected

    def _doubtful(self, worker: str, fresh: Intervals) -> Intervals:
        """Those of a given-up worker's numbers that are still without a state."""
        waiting = self._suspect.intersection(fresh)
        self._suspect.subtract(waiting)
        waiting.update(self._rerun.intersection(fresh))
        # its batches may not have been taken away yet
        known = self._outstanding.get(worker, Intervals())
        waiting.update(known.intersection(fresh))
        known.subtract(fresh)
        waiting.subtract(self._settled.intersection(waiting))
        # what waits to be run again need not be
        spared = self.pool.intersection(waiting)
        self.reruns -= len(self._rerun.intersection(spared))
        self.pool.subtract(spared)
        return waiting

    def give_back(self, worker: str, numbers: Iterable[Interval]) -> None:
        """A worker will not start these: they can be placed again."""
        known = self._outstanding.get(worker, Intervals())
        back = known.intersection(numbers)
        if back:
            known.subtract(back)
            # they may come to the same worker again, in another batch
            for number in self._order[worker]:
                if number in self.batches:
                    self.batches[number].numbers.subtract(back)
            self._forget_over(worker)
        if worker in self._fenced or self._closed:
            doubtful = self._suspect.intersection(numbers)
            # not started here, but perhaps by the worker that had it first
            doubtful.subtract(self._rerun.intersection(doubtful))
            self._suspect.subtract(doubtful)
            back.update(doubtful)
        back.subtract(self._settled.intersection(back))
        if self._closed:
            self._not_started += len(back)
        else:
            self.pool.update(back)

    # taking away

    def fence(self, worker: str) -> None:
        """From here on, results of this worker are late or stale."""
        self._fenced.add(worker)

    def batches_of(self, worker: str) -> list[int]:
        """All open batches of a worker, claimed ones too."""
        return [number for number, batch in self.batches.items() if batch.worker == worker]

    def revoked(self, batch: int) -> Intervals:
        """Nobody can start a batch any more: its numbers can be placed again."""
        found = self.batches.pop(batch)
        known = self._outstanding[found.worker]
        back = known.intersection(found.numbers)
        known.subtract(back)
        # settled late by a first start: it need not be run again
        back.subtract(self._settled.intersection(back))
        self.pool.update(back)
        return back

    def claimed(self, batch: int) -> None:
        """A batch cannot be taken away. If its worker is fenced, its numbers are suspect."""
        found = self.batches[batch]
        found.claimed = True
        if found.worker not in self._fenced:
            return
        del self.batches[batch]
        known = self._outstanding[found.worker]
        doubtful = known.intersection(found.numbers)
        known.subtract(doubtful)
        doubtful.subtract(self._settled.intersection(doubtful))
        if self._idempotent:
            self._rerun.update(doubtful)
            self.reruns += len(doubtful)
            self.pool.update(doubtful)
        else:
            self._suspect.update(doubtful)

    def droppable(self, numbers: Intervals) -> Intervals:
        """Those of some arrivals in the pool that have certainly not started."""
        found = numbers.copy()
        found.subtract(self._rerun.intersection(numbers))
        return found

    def drop(self, numbers: Intervals, why: Outcome) -> None:
        """Arrivals in the pool that no worker can start in time.

        Those that were to be run again are suspect again: they may have started.
        """
        self.pool.subtract(numbers)
        dropped = self.droppable(numbers)
        again = self._rerun.intersection(numbers)
        self._rerun.subtract(again)
        self.reruns -= len(again)
        self._suspect.update(again)
        self._settled.update(dropped)
        self._counts[why] += len(dropped)

    # the end

    def release_unused(self) -> None:
        """Numbers that no worker started leave the plan, where the plan is a duration."""
        again = self.pool.intersection(self._rerun)
        self._unused += len(self.pool) - len(again)
        # to be run again, so perhaps started: they cannot leave
        self.pool = again

    def close(self, budget: int | None) -> None:
        """Nothing starts any more: what was not settled is lost or was not started.

        Closing again changes nothing.
        """
        if self._closed:
            return
        doubtful = self._suspect.copy()
        for numbers in self._outstanding.values():
            doubtful.update(numbers)
            numbers.subtract(list(numbers))
        again = self.pool.intersection(self._rerun)
        self.pool.subtract(again)
        self.reruns -= len(again)
        doubtful.update(again)
        doubtful.subtract(self._settled.intersection(doubtful))
        self._suspect = doubtful
        self._not_started = len(self.pool)
        self._plan = self.allotted - self._unused
        if budget is not None:
            self._not_started += max(0, budget - self.allotted)
            self._plan = max(budget, self.allotted)
        self._closed = True
        sums = self.accounting()
        assert sums.settled == sums.planned, f"the ledger does not add up: {sums}"

    @property
    def closed(self) -> bool:
        """Every iteration has its state."""
        return self._closed

    def accounting(self, *, duplicates: int = 0, refused: int = 0) -> Accounting:
        """The sums so far; the states sum to the plan once closed."""
        counts = self._counts
        drops = {
            reason: counts[outcome] for outcome, reason in DROP_REASONS.items() if counts[outcome]
        }
        ran = {outcome.name.lower(): counts[outcome] for outcome in RAN}
        dropped = sum(drops.values())
        return Accounting(
            planned=self._plan if self._closed else self.allotted - self._unused,
            dropped=dropped,
            # a result that comes after all takes its number out of the suspect ones
            lost=len(self._suspect) if self._closed else 0,
            not_started=self._not_started,
            drops=drops,
            reruns=self.reruns,
            late=self.late,
            stale=self.stale,
            duplicates=duplicates,
            refused=refused,
            **ran,
        )
