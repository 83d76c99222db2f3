"""State that changes during a run; only this package writes it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Interruption:
    """Number of interrupts by the user: 1 drains, 2 stops now, 3 does not wait for iterations."""

    level: int = 0

    @property
    def drains(self) -> bool:
        """Return whether no more load is wanted."""
        return self.level >= 1

    @property
    def stops(self) -> bool:
        """Return whether the run is to end at once."""
        return self.level >= 2

    @property
    def insists(self) -> bool:
        """Return whether contexts are undone even while iterations use them."""
        return self.level >= 3


@dataclass(slots=True)
class RunStatus:
    """The state that the workloads of a run share."""

    interruption: Interruption = field(default_factory=Interruption)
    #: The unreachable servers, in words, and of them the Redis of the run; "" if none is.
    store_away: str = ""
    redis_away: str = ""
    #: The SLA criterion that stops all load, and why; "" while there is none.
    breach: str = ""

    @property
    def stopped_for(self) -> str | None:
        """The cause if no more load is to be started: "interrupted" or "sla"; else None."""
        if self.interruption.drains:
            return "interrupted"
        return "sla" if self.breach else None
