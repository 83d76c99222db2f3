"""State of a run under its earlier coordinators, for the coordinator that resumes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.intervals import Interval, Intervals
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run.plan import WorkloadPlan
from osbench.coordinator.load.run.resumption.outcome_notes import (
    OutcomeNotes,
    carried_on,
    saved_notes,
)
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.core_use import CpuProfile
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.run_directory import RunDirectory

Ints = NDArray[np.int64]


class EarlierRun:
    """State of a run before this coordinator, which resumes the run; empty for a new run.

    Read from the run directory before this coordinator writes to it.
    """

    def __init__(self, directory: RunDirectory, accounts: Accounts) -> None:
        """Read the journal and the notes in `directory`; `accounts` has journal and blocks already.

        Raises DamagedRun for a damaged journal.
        """
        #: The notes of the run.
        self.notes = saved_notes(directory)
        #: By membership: the workload that it was granted work of last.
        self._serving: dict[str, int] = {}
        #: By workload with an open load: numbers that were granted or dropped, and their dues.
        self._due: dict[int, list[tuple[list[Interval], bytes]]] = {}
        for record in directory.decisions():
            self._note(record)
        self._closed = frozenset(accounts.closed)
        self._t0_at = dict(accounts.t0_at)
        #: Memberships that may send heartbeats again.
        self._hoped_for = {
            one.mid for one in accounts.memberships.values() if not (one.lost or one.whole)
        }

    def _note(self, record: dict[str, Any]) -> None:
        if record["do"] == "cut":
            self._serving[record["mid"]] = record["workload"]
            self._note_dues(record, record["intervals"])
        elif record["do"] == "drop":
            self._note_dues(record, record["numbers"])

    def _note_dues(self, record: dict[str, Any], numbers: list[Interval]) -> None:
        if record.get("dues"):
            self._due.setdefault(record["workload"], []).append((numbers, record["dues"]))

    def is_over(self, number: int) -> bool:
        """Return whether the load of workload `number` had ended: its ledger was closed."""
        return number in self._closed

    def t0_at(self, group: Sequence[WorkloadPlan]) -> float | None:
        """Return when a group's load began, Redis time, seconds since 1970; None if it did not.

        If its workloads have different times, the first one.
        """
        found = [self._t0_at[one.number] for one in group if one.number in self._t0_at]
        return min(found, default=None)

    def has_begun(self, number: int) -> bool:
        """Return whether the load of workload `number` had begun."""
        return number in self._t0_at

    def dues(self, number: int) -> Iterator[tuple[int, Ints]]:
        """Yield the due times of the granted or dropped arrivals of workload `number`, in parts.

        Each part has the number of its first arrival and an array of due times of consecutive
        arrivals, ns after t0. Parts come in the order of their numbers.
        """
        parts: dict[int, Ints] = {}
        known = Intervals()
        for numbers, packed in self._due.get(number, ()):
            dues, at = np.frombuffer(packed, "<i8").astype(np.int64), 0
            for low, high in numbers:
                # numbers that moved, or were dropped after they were granted, are known
                fresh = Intervals([(low, high)])
                fresh.subtract(known.within(low, high))
                for begin, end in fresh:
                    parts[begin] = dues[at + begin - low : at + end - low]
                at += high - low
            known.update(numbers)
        yield from sorted(parts.items())

    def serving(self, number: int) -> list[str]:
        """Return ids of the memberships last granted work of workload `number`, if maybe alive.

        A membership is one worker process's part in the run. Memberships that were lost or have
        left are left out.
        """
        return [
            mid
            for mid, workload in self._serving.items()
            if workload == number and mid in self._hoped_for
        ]

    def size(self, number: int) -> int:
        """Return how many workers served the load of workload `number` last and may be alive.

        At least 1; 0 if its load had not begun.
        """
        return max(1, len(self.serving(number))) if self.has_begun(number) else 0

    def parts(
        self, workers: Sequence[WorkerHandle], group: Sequence[WorkloadPlan]
    ) -> list[list[WorkerHandle]]:
        """Divide `workers` over the workloads of `group`: a list for each workload, in order.

        A worker stays with a workload of the group that it was granted work of last. The others go,
        one by one, to the workload with the fewest workers.
        """
        parts = [
            [worker for worker in workers if self._serving.get(worker.mid) == one.number]
            for one in group
        ]
        taken = {worker.mid for part in parts for worker in part}
        for worker in workers:
            if worker.mid not in taken:
                min(parts, key=len).append(worker)
        return parts

    def carried_on(self, number: int, outcome: WorkloadOutcome) -> WorkloadOutcome:
        """Return `outcome`, of a workload, with the figures that earlier coordinators noted."""
        return carried_on(outcome, self.notes.workloads.get(number, OutcomeNotes()))

    @property
    def problems(self) -> tuple[str, ...]:
        """A tuple of one message if earlier notes of the run cannot be read; else empty."""
        return (self.notes.problem,) if self.notes.problem else ()

    def cpu(self, number: int) -> CpuProfile:
        """Return the CPU profile of the workers of a workload from earlier notes, else empty."""
        found, notes = CpuProfile(), self.notes.workloads.get(number, OutcomeNotes())
        for worker, points in notes.cpu.items():
            for at_s, value in points:
                found.add(worker, at_s, value)
        return found
