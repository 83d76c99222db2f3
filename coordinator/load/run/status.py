"""State that changes during a run: interrupts, unreachable servers, a failed SLA.

Only this package writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osbench.coordinator.report.run_outcome import Breach

#: Longest time that undoing contexts may go on after Ctrl-C, seconds.
UNDO_S = 600.0


@dataclass(slots=True)
class Interruption:
    """The count of interrupts of a run.

    1 drains the load, 2 stops it at once, 3 undoes contexts without waiting for iterations.
    """

    level: int = 0
    #: Iterations have not ended in time after the first one.
    overdue: bool = False
    #: When contexts are left at the latest, monotonic seconds; None before the first look.
    undo_by: float | None = None

    @property
    def drains(self) -> bool:
        """Return whether no more load is to be started, and running iterations may end.

        The run was interrupted at least once.
        """
        return self.level >= 1

    @property
    def stops(self) -> bool:
        """Return whether the run is to end at once: interrupted twice, or overdue after once."""
        return self.level >= 2 or self.overdue

    @property
    def insists(self) -> bool:
        """Return whether contexts are undone while iterations use them: a third interrupt."""
        return self.level >= 3

    def leaves(self, now: float) -> bool:
        """Return whether contexts that are being undone are to be left to `cleanup`.

        After a third interrupt, or `UNDO_S` after the first call that follows an earlier one: a
        clean-up of foreign code may have no end. `now`: monotonic seconds.
        """
        if not self.drains:
            return False
        if self.undo_by is None:
            self.undo_by = now + UNDO_S
        return self.insists or now >= self.undo_by


@dataclass(slots=True)
class RunStatus:
    """The state that all workloads of a run share: interrupts, lost servers, a failed SLA."""

    interruption: Interruption = field(default_factory=Interruption)
    #: The unreachable servers, in words, and of them the Redis of the run; "" if none is.
    store_away: str = ""
    redis_away: str = ""
    #: The SLA criterion that stops all load; None while there is none.
    breach: Breach | None = None

    @property
    def stopped_for(self) -> str | None:
        """The cause if no more load is to be started: "interrupted" or "sla"; else None."""
        if self.interruption.drains:
            return "interrupted"
        return "sla" if self.breach else None
