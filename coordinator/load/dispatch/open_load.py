"""Grants the arrivals of an open load to workers, shortly before they are due.

Granted arrivals are due at most `HORIZON_S` after the last sign of life of a worker, so that few
are lost with it; later arrivals are dealt to live workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osbench.common.plugin.runner import Step
from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.dispatch.arrivals import Dues, Ints, nanoseconds, slices
from osbench.coordinator.load.dispatch.batches import Batches, Grant
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.fleet.worker_request import ANY_NUMBER
from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares
from osbench.coordinator.results.accounting.ledger import Ledger
from osbench.coordinator.results.accounting.load_profile import arrival_window

#: Arrivals are given out in parts that span this many seconds: each is a message to each worker.
PART_S = 0.2
PART_S_PER_WORKER = 0.004
#: A worker that has been silent for more seconds gets no arrivals while others are live.
PASSED_S = 0.7


@dataclass(frozen=True, kw_only=True)
class ArrivalRules:
    """Rules for the arrivals of an open load."""

    #: Arrivals that no worker can be given are dropped when they are later, seconds.
    max_lag_s: float
    #: Arrivals due before do not count in `rate_planned`, nanoseconds after t0.
    warmup_ns: int = 0
    #: End of the plan, seconds after t0; None if not known.
    planned_s: float | None = None
    #: Divides arrivals among the zones of workers.
    zones: ZoneShares = NO_ZONES


class OpenLoad:
    """Grants the arrivals of an open load in turn to all live workers, soon before they are due."""

    def __init__(self, batches: Batches, ledger: Ledger, rules: ArrivalRules) -> None:
        self._planned_ns = None if rules.planned_s is None else int(rules.planned_s * 1e9)
        self._batches = batches
        self._ledger = ledger
        self._max_lag_s = rules.max_lag_s
        self._warmup_ns = rules.warmup_ns
        self._zones = rules.zones
        self._dues = Dues()
        #: Arrivals planned and not yet given out.
        self._coming = np.empty(0, np.int64)
        #: Arrivals planned after the warm-up, and when the first and last of them are due.
        self._arrivals = self._first_due = self._last_due = 0
        #: When the last arrival that was given out is due; -1 before the first.
        self._given_ns = -1

    @property
    def planned(self) -> int:
        """Return the number of arrivals planned so far, granted or not."""
        return self._ledger.allotted + len(self._coming)

    @property
    def rate_planned(self) -> float | None:
        """Return the planned arrivals per second after the warm-up; None if not known yet."""
        arrivals = self._arrivals
        window = arrival_window(self._first_due, self._last_due, arrivals, self._planned_ns)
        return arrivals * 1e9 / window if window else None

    def restore(self, first: int, dues: Ints) -> None:
        """Add arrivals that an earlier coordinator granted, from number `first` on.

        `dues`: nanoseconds after t0. They can move to other workers, and count in the rate.
        """
        self._dues.add(first, dues, whole=False)
        self._count(dues)

    def ranks_of(self, numbers: Intervals) -> Ints:
        """Return the ranks by time of arrivals that were granted, from 1, in the order of numbers.

        Arrivals are dealt to workers in turn, so numbers of one worker follow each other, and times
        do not.
        """
        return self._dues.ranks_of(numbers.members())

    def cut(self, elapsed_s: float) -> tuple[float, int]:
        """Discard planned arrivals that are due after the change of the load and were not granted.

        Returns the time of the change, seconds after t0, and the count of arrivals planned before.
        The time is `elapsed_s` or, if that is later, just after the last granted arrival.
        """
        at_s = max(0.0, elapsed_s, (self._given_ns + 1) / 1e9)
        # arrivals that are due by now and wait for a worker stay in the plan
        self._coming = self._coming[self._coming < int(at_s * 1e9)]
        return at_s, self.planned

    def skip(self, step: Step, until_s: float) -> None:
        """Plan the arrivals of `step`, and drop arrivals due before `until_s`, seconds after t0.

        There was no coordinator then. They are not made up for: they get numbers and are written to
        the journal as dropped.
        """
        self._plan(step, None)
        gone = self._coming[self._coming < int(until_s * 1e9)]
        self._coming = self._coming[len(gone) :]
        if not len(gone):
            return
        self._count(gone)
        first = self._ledger.allotted + 1
        self._dues.add(first, gone)
        numbers = self._ledger.allot_new(len(gone))
        self._ledger.pool.update(numbers)
        self._batches.drop(numbers, Outcome.DROPPED_COORDINATOR_GONE, self._packed_dues)

    def place(
        self, step: Step, workers: Sequence[WorkerHandle], elapsed_s: float, stop_s: float | None
    ) -> None:
        """Plan the arrivals of `step`; grant arrivals that are due next or were given back.

        Drops arrivals that are too late. Workers silent for `PASSED_S` get none if others are
        alive. `elapsed_s`, and `stop_s`, from which arrivals are discarded, are seconds after t0.
        Raises errors of `Batches.grant`.
        """
        self._plan(step, stop_s)
        now = time.monotonic()
        hands = [one for one in workers if one.age_s(now) < PASSED_S + one.turn_s] or list(workers)
        self._drop_late(elapsed_s)
        found = self._moved(hands)
        if hands:
            heard_s = max(worker.age_s(now) - 2 * worker.turn_s for worker in hands)
            found += self._deal(self._take_due(elapsed_s, heard_s, len(hands)), hands)
        self._batches.grant(found)

    def _plan(self, step: Step, stop_s: float | None) -> None:
        coming = np.concatenate((self._coming, nanoseconds(step.arrivals)))
        if stop_s is not None:
            coming = coming[coming < int(stop_s * 1e9)]
        self._coming = coming

    def _take_due(self, elapsed_s: float, heard_s: float, hands: int) -> Ints:
        """Take the planned arrivals to be granted now; return their due times, ns after t0.

        `heard_s`: longest time since a sign of life of a worker; `hands`: number of workers. Empty
        if the arrivals are too few for a message to each worker and can wait.
        """
        limit_s = elapsed_s + timers.HORIZON_S - heard_s
        count = int(np.searchsorted(self._coming, int(limit_s * 1e9)))
        due = self._coming[:count]
        part_s = max(PART_S, PART_S_PER_WORKER * hands)
        # parts worth a message each, unless an arrival would be granted late
        soon = count and due[0] < int((limit_s - part_s) * 1e9)
        if not soon and not (count and count == len(self._coming)):
            return due[:0]
        self._coming = self._coming[count:]
        self._count(due)
        return due

    def _count(self, dues: Ints) -> None:
        if len(dues):
            self._given_ns = max(self._given_ns, int(dues[-1]))
        warm = dues[dues >= self._warmup_ns]
        if len(warm):
            if not self._arrivals:
                self._first_due = int(warm[0])
            self._last_due = max(self._last_due, int(warm[-1]))
            self._arrivals += len(warm)

    def _moved(self, workers: Sequence[WorkerHandle]) -> list[Grant]:
        if not workers or not self._ledger.pool:
            return []
        found, many = [], [ANY_NUMBER] * len(workers)
        counts = self._zones.split(len(self._ledger.pool), _labels(workers), many)
        for worker, count in zip(workers, counts, strict=True):
            taken = self._ledger.allot(count, 0, worker.name)
            if taken:
                found.append(self._grant(worker, taken))
        return found

    def _deal(self, dues: Ints, workers: Sequence[WorkerHandle]) -> list[Grant]:
        found = []
        for part in slices(dues):
            first = self._ledger.allotted + 1
            hands = self._zones.deal(part, _labels(workers), first)
            # a worker's arrivals of a slice have one run of numbers: the ledger stays small
            self._dues.add(first, np.concatenate(hands))
            for worker, hand in zip(workers, hands, strict=True):
                if len(hand):
                    found.append(self._grant(worker, self._ledger.allot_new(len(hand))))
        return found

    def _grant(self, worker: WorkerHandle, numbers: Intervals) -> Grant:
        return Grant(worker=worker, numbers=numbers, dues=self._packed_dues(numbers))

    def _packed_dues(self, numbers: Intervals) -> bytes:
        return self._dues.of(numbers.members()).astype("<i8").tobytes()

    def _drop_late(self, elapsed_s: float) -> None:
        """Drop planned and returned arrivals due more than `max_lag_s` before `elapsed_s`."""
        limit = int((elapsed_s - self._max_lag_s) * 1e9)
        late = self._coming[self._coming < limit]
        if len(late):
            self._coming = self._coming[len(late) :]
            self._count(late)
            self._dues.add(self._ledger.allotted + 1, late)
            self._ledger.pool.update(self._ledger.allot_new(len(late)))
        if not self._ledger.pool:
            return
        numbers = self._ledger.pool.members()
        gone = Intervals.of(numbers[self._dues.of(numbers) < limit])
        if gone:
            self._batches.drop(gone, Outcome.DROPPED_WORKER_LOST, self._packed_dues)


def _labels(workers: Sequence[WorkerHandle]) -> list[str]:
    return [worker.beat.label for worker in workers]
