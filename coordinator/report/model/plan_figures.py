"""Figures of a workload that `plan` predicted, next to figures of a run."""

from __future__ import annotations

from dataclasses import dataclass

#: Figures that differ by more than this factor are reported, with the likely reason.
FACTOR = 2.0


@dataclass(frozen=True, kw_only=True)
class PlannedFigure:
    """A value as planned, and as measured; None if it was not measured."""

    planned: float
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """Measured value divided by the planned one; None if either is missing."""
        if self.measured is None or self.planned <= 0:
            return None
        return self.measured / self.planned

    @property
    def differs(self) -> bool:
        """Return whether the values differ by more than `FACTOR`; False if either is missing."""
        return self.ratio is not None and not 1 / FACTOR <= self.ratio <= FACTOR


@dataclass(frozen=True, kw_only=True)
class PlanComparison:
    """Figures of a workload that `plan` predicted, compared with figures of a run."""

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
