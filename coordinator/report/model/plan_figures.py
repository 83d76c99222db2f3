"""Figures of a workload as planned, beside those of a run."""

from __future__ import annotations

from dataclasses import dataclass

#: Figures that are further apart than this factor are told, with the likely reason.
FACTOR = 2.0


@dataclass(frozen=True, kw_only=True)
class PlannedFigure:
    """A value as planned, and as it was; None where that is not known."""

    planned: float
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """Measured by planned."""
        if self.measured is None or self.planned <= 0:
            return None
        return self.measured / self.planned

    @property
    def differs(self) -> bool:
        """More than the factor apart."""
        return self.ratio is not None and not 1 / FACTOR <= self.ratio <= FACTOR


@dataclass(frozen=True, kw_only=True)
class PlanComparison:
    """The figures of a workload that `plan` gave, against those of a run."""

    #: Worker processes.
    workers: PlannedFigure
    #: CPU time of an iteration, seconds.
    cost_s: PlannedFigure
    #: Mean service time, seconds.
    service_s: PlannedFigure
    #: Virtual users with an iteration in hand, at the peak.
    users: PlannedFigure
    #: Mean share of a core of a worker process, with the workers that there were.
    cpu: PlannedFigure
    #: Sentences on figures that differ much, with the likely reason.
    differences: tuple[str, ...]
