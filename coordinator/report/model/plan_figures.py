"""Figures that `plan` predicted for a workload, with the figures of the run."""

from __future__ import annotations

from dataclasses import dataclass

#: Figures that differ by more than this factor are reported, with the likely reason.
FACTOR = 2.0


@dataclass(frozen=True, kw_only=True)
class PlannedFigure:
    """A predicted figure of a workload and the measured one; None if it was not measured."""

    planned: float
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """Measured value divided by the planned one; None if not measured, or if 0 was planned."""
        if self.measured is None or self.planned <= 0:
            return None
        return self.measured / self.planned

    @property
    def differs(self) -> bool:
        """Return whether measured and planned value differ by more than a factor of `FACTOR`.

        False if either value is missing.
        """
        return self.ratio is not None and not 1 / FACTOR <= self.ratio <= FACTOR


@dataclass(frozen=True, kw_only=True)
class PlanComparison:
    """Figures that `plan` predicted for one workload, each with the measured figure."""

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
