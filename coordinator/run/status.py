"""What changes while a run goes on; only this package writes it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Interruption:
    """What the user wants: 0 nothing, 1 drain (first Ctrl-C), 2 stop now (second), 3 (third)."""

    level: int = 0

    @property
    def drains(self) -> bool:
        """No more load is wanted."""
        return self.level >= 1

    @property
    def stops(self) -> bool:
        """The run is to end at once."""
        return self.level >= 2

    @property
    def insists(self) -> bool:
        """Not even iterations that use what contexts have made are to be waited for."""
        return self.level >= 3


@dataclass(slots=True)
class RunStatus:
    """The state that the workloads of a run share."""

    interruption: Interruption = field(default_factory=Interruption)
    #: The servers that are away, in words, and of them the Redis of the run; "" if none is.
    store_away: str = ""
    redis_away: str = ""
    #: The SLA criterion that stops all load, and why; "" while there is none.
    breach: str = ""

    @property
    def stopped_for(self) -> str | None:
        """Why no more load is to be started: "interrupted", "sla", or None."""
        if self.interruption.drains:
            return "interrupted"
        return "sla" if self.breach else None
