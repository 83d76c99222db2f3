"""What an earlier coordinator has left of a run, for the one that resumes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.intervals import Intervals
from osbench.common.plugin.hook import Event
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.accounts import Accounts
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.run.plan import WorkloadPlan
from osbench.coordinator.run.resumption.outcome_notes import OutcomeNotes, carried_on, noted
from osbench.coordinator.storage.run_directory import RunDirectory

Ints = NDArray[np.int64]


class EarlierRun:
    """Read once, before anything else is written; of a new run it is empty."""

    def __init__(self, directory: RunDirectory, accounts: Accounts) -> None:
        """`accounts` has folded the directory. Raises OsbenchError where that is damaged."""
        self._notes, self.losses = noted(directory)
        #: Firings by workload and hook.
        self._fired: dict[tuple[int, int], list[Event]] = {}
        #: By workload and hook: the last value that its trigger was asked for.
        self._seen: dict[tuple[int, int], int] = {}
        #: By membership: the workload that it was granted work of last.
        self._serving: dict[str, int] = {}
        #: Cuts of open loads by workload.
        self._cuts: dict[int, list[dict[str, Any]]] = {}
        for record in directory.decisions():
            self._note(record)
        self._closed = frozenset(accounts.closed)
        self._t0_at = dict(accounts.t0_at)
        #: Memberships that may be heard again.
        self._hoped_for = {
            one.mid for one in accounts.memberships.values() if not (one.lost or one.whole)
        }

    def _note(self, record: dict[str, Any]) -> None:
        if record["do"] == "hook":
            place = (record["workload"], record["hook"])
            self._seen[place] = record["seen"]
            self._fired.setdefault(place, []).extend(
                Event(unit=record["unit"], value=value) for value in record["values"]
            )
        elif record["do"] == "cut":
            self._serving[record["mid"]] = record["workload"]
            if record.get("dues"):
                self._cuts.setdefault(record["workload"], []).append(record)

    def is_over(self, number: int) -> bool:
        """The load of a workload had ended."""
        return number in self._closed

    def t0_at(self, group: Sequence[WorkloadPlan]) -> float | None:
        """When the load of a group began, seconds since 1970 in Redis time; None: it did not."""
        found = [self._t0_at[one.number] for one in group if one.number in self._t0_at]
        return min(found, default=None)

    def has_begun(self, number: int) -> bool:
        """The load of a workload had begun."""
        return number in self._t0_at

    def seen(self, number: int, hooks: int) -> list[int]:
        """By hook of a workload: the last value that its trigger was asked for; -1 is none."""
        return [self._seen.get((number, hook), -1) for hook in range(hooks)]

    def dues(self, number: int) -> Iterator[tuple[int, Ints]]:
        """Due instants of the arrivals of a workload that were given out, by first number.

        Nanoseconds after t0.
        """
        parts: dict[int, Ints] = {}
        known = Intervals()
        for record in self._cuts.get(number, ()):
            dues = np.frombuffer(record["dues"], "<i8").astype(np.int64)
            at = 0
            for low, high in record["intervals"]:
                part, at = dues[at : at + high - low], at + high - low
                # those that moved were given out before
                if not known.intersection([(low, high)]):
                    parts[low] = part
            known.update(record["intervals"])
        yield from sorted(parts.items())

    def serving(self, number: int) -> list[str]:
        """Memberships that a workload had work for, and that may be heard again."""
        return [
            mid
            for mid, workload in self._serving.items()
            if workload == number and mid in self._hoped_for
        ]

    def size(self, number: int) -> int:
        """Workers that the load of a workload had; 0 where it had not begun."""
        return max(1, len(self.serving(number))) if self.has_begun(number) else 0

    def parts(
        self, workers: Sequence[WorkerHandle], group: Sequence[WorkloadPlan]
    ) -> list[list[WorkerHandle]]:
        """The workers of each workload of a group that is under load: those it had, and others."""
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
        """An outcome with what was noted of the workload."""
        notes = self._notes.get(number)
        firings = [self._fired.get((number, hook), []) for hook in range(len(outcome.hooks))]
        if notes is None and not any(firings):
            return outcome
        return carried_on(outcome, notes or OutcomeNotes(), firings)
