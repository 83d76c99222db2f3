"""Counters of the system under test on the time axis of a load, and their mean, p95 and maximum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.accounting.counter_figures import (
    CounterFigures,
    CounterKind,
    counter_label,
)

Floats = NDArray[np.float64]

#: Percentile of the values: it is exceeded for a twentieth of the time.
_P95 = 95


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterSeries:
    """A counter of one host: its values at equal intervals over the load of one workload."""

    name: str
    #: "" if the query does not name one.
    host: str
    kind: CounterKind
    unit: str
    #: Values at the times of `WorkloadCounters.times`; nan if there is none.
    values: Floats

    @property
    def label(self) -> str:
        """Name and host, such as "CPU of db1"; only the name if no host is known."""
        return counter_label(self.name, self.host)

    @property
    def is_known(self) -> bool:
        """Return whether at least one value is known."""
        return bool(np.isfinite(self.values).any())


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadCounters:
    """All counters of the system under test over the load of one workload, on one time axis."""

    #: Seconds between two values; the first is that of t0.
    step_s: float = 1.0
    series: tuple[CounterSeries, ...] = ()
    #: Length of the load, seconds.
    elapsed_s: float = 0.0

    def times(self) -> Floats:
        """Return seconds after t0 (begin of the load) of the values; empty without series."""
        points = len(self.series[0].values) if self.series else 0
        return np.arange(points, dtype=np.float64) * self.step_s

    def mean(self, series: CounterSeries, stretches: Iterable[tuple[float, float]]) -> float | None:
        """Return the mean of the known values of a counter in some periods; None if there are none.

        `stretches`: the periods, (begin, end) in seconds after t0, begin included, end not. A value
        counts once if periods overlap.
        """
        at = self.times()
        within = np.zeros(len(at), bool)
        for begin, end in stretches:
            within |= (at >= begin) & (at < end)
        found = series.values[within]
        found = found[np.isfinite(found)]
        return float(found.mean()) if len(found) else None

    def figures(self) -> tuple[CounterFigures, ...]:
        """Return the figures of each counter, resources first."""
        return figures_of(self)

    def shares(self, stretches: Iterable[tuple[float, float]]) -> dict[str, float]:
        """Return the mean used fraction (0 to 1) of each resource in some periods, by its label.

        Resources without values are left out.
        """
        periods = list(stretches)
        found = {
            one.label: self.mean(one, periods)
            for one in self.series
            if one.kind is CounterKind.SHARE
        }
        return {label: mean for label, mean in found.items() if mean is not None}


@dataclass(frozen=True, kw_only=True)
class CollectedCounters:
    """Counters of a run by number of the workload, and notes for the report on reading them."""

    workloads: dict[int, WorkloadCounters] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def figures_of(counters: WorkloadCounters) -> tuple[CounterFigures, ...]:
    """Return the figures of each counter that has known values.

    Order: resources (kind "share"), fullest first by p95; then queues, then flows, each by name and
    host.
    """
    found = []
    for one in counters.series:
        known = one.values[np.isfinite(one.values)]
        if len(known):
            found.append(
                CounterFigures(
                    name=one.name,
                    host=one.host,
                    kind=one.kind.value,
                    unit=one.unit,
                    mean=float(known.mean()),
                    p95=float(np.percentile(known, _P95)),
                    max=float(known.max()),
                )
            )
    kinds = list(CounterKind)
    # those without a limit by name: their units differ
    return tuple(
        sorted(
            found,
            key=lambda one: (
                kinds.index(CounterKind(one.kind)),
                -one.p95 if one.kind == CounterKind.SHARE else 0.0,
                one.name,
                one.host,
            ),
        )
    )


def grid_values(
    points: Sequence[tuple[float, float]], begin: float, step_s: float, count: int
) -> Floats:
    """Return `count` values, one per `step_s` seconds from `begin` on; nan if there is none.

    Each of `points` (time, value) goes to the nearest step; of several the last one counts. Points
    outside are ignored. Times and `begin` are seconds since 1970.
    """
    values = np.full(count, np.nan)
    for at, value in points:
        place = round((at - begin) / step_s)
        if 0 <= place < count:
            values[place] = value
    return values
