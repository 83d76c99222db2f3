"""What really happened, which no process of the model knows, beside what the runs tell."""

from __future__ import annotations

from collections import Counter

from property.protocol_model.coordinator_model import CoordinatorModel, PlanModel
from property.protocol_model.faults import FAULTS
from property.protocol_model.ledger_model import LedgerModel

#: Faults in which no process dies or sleeps: they must cost nothing.
HARMLESS = frozenset(FAULTS) - {"kill", "pause"}


class Judge:
    """Counts by kind what must not happen."""

    def __init__(self) -> None:
        self.broken: Counter[str] = Counter()
        self.plans: dict[str, PlanModel] = {}
        self._starts: Counter[tuple[str, int]] = Counter()
        self._orders: set[tuple[str, int, int]] = set()
        self._quiet: set[int] = set()

    def may_start(self, mid: int) -> None:
        """A coordinator has renewed the lease of a membership."""
        self._quiet.discard(mid)

    def may_not_start(self, mid: int) -> None:
        """A coordinator takes it for certain that a membership starts nothing from here on."""
        self._quiet.add(mid)

    def ordered(self, run: str, mid: int, numbers: tuple[int, ...]) -> None:
        """A coordinator wants to grant numbers."""
        self._orders.update((run, mid, number) for number in numbers)

    def popped(self, mid: int) -> None:
        """A user has taken a number out."""
        if mid in self._quiet:
            self.broken["late start"] += 1

    def started(self, run: str, mid: int, number: int, specification: int | None) -> None:
        """The service under test has got a request."""
        plan = self.plans[run]
        if self._starts[run, number] and not plan.idempotent:
            self.broken["started twice"] += 1
        if (run, mid, number) not in self._orders:
            self.broken["not ordered"] += 1
        if specification != plan.digest:
            self.broken["specification of another run"] += 1
        self._starts[run, number] += 1

    def hear(self, coordinator: CoordinatorModel, *, exact: bool) -> None:
        """Compare what a run tells with what has happened; nothing may be lost if `exact`."""
        ledger = coordinator.ledger
        if ledger.states is None:
            return
        if set(ledger.states) != set(range(coordinator.plan.size)):
            self.broken["sum"] += 1
        for number, state in ledger.states.items():
            began = self._starts[coordinator.plan.run, number] > 0
            # what is too late to be started again is dropped, whoever may have started it
            surely = state == "dropped" and not coordinator.plan.idempotent
            if (state == "not_started" or surely) and began:
                self.broken[f"told {state} though started"] += 1
            if state in ("ok", "failed") and not began:
                self.broken["told ok though not started"] += 1
            if state == "lost" and exact:
                self.broken["needlessly lost"] += 1
        if _twice(ledger):
            self.broken["counted twice"] += 1


def _twice(ledger: LedgerModel) -> bool:
    return any(
        count > 1 for counts in (ledger.counted, ledger.applied) for count in counts.values()
    )
