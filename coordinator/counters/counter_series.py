"""Counters of the system under test on the time axis of a load, and their figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.counters.counter_query import SHARE_UNIT, CounterKind
from osbench.coordinator.formatting import size, three_digits

Floats = NDArray[np.float64]

#: Used part of a resource from which it is near its limit.
NEAR_LIMIT = 0.9
#: Part of the time for which a value is exceeded in 5 of 100.
_P95 = 95


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterSeries:
    """A counter of a host over time."""

    name: str
    #: "" if the query does not name one.
    host: str
    kind: CounterKind
    unit: str
    #: Values at `WorkloadCounters.times`; nan if there is none.
    values: Floats

    @property
    def label(self) -> str:
        """Name and host: CPU of db1."""
        return counter_label(self.name, self.host)

    @property
    def is_known(self) -> bool:
        """There are values."""
        return bool(np.isfinite(self.values).any())


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkloadCounters:
    """The counters while a workload was under load."""

    #: Seconds between two values; the first is that of t0.
    step_s: float = 1.0
    series: tuple[CounterSeries, ...] = ()
    #: Length of the load, seconds.
    elapsed_s: float = 0.0

    def times(self) -> Floats:
        """Times of the values, seconds after t0."""
        points = len(self.series[0].values) if self.series else 0
        return np.arange(points, dtype=np.float64) * self.step_s

    def mean(self, series: CounterSeries, stretches: Iterable[tuple[float, float]]) -> float | None:
        """The mean of a counter over stretches of time, seconds after t0; None if not known."""
        at = self.times()
        within = np.zeros(len(at), bool)
        for begin, end in stretches:
            within |= (at >= begin) & (at < end)
        found = series.values[within]
        found = found[np.isfinite(found)]
        return float(found.mean()) if len(found) else None


@dataclass(frozen=True, kw_only=True)
class CounterFigures:
    """A counter over a load. Percentiles are of time, not of iterations."""

    name: str = ""
    host: str = ""
    kind: str = CounterKind.FLOW.value
    unit: str = ""
    mean: float = 0.0
    p95: float = 0.0
    max: float = 0.0

    @property
    def label(self) -> str:
        """Name and host: CPU of db1."""
        return counter_label(self.name, self.host)

    @property
    def is_near_limit(self) -> bool:
        """A resource that was nearly full for a twentieth of the load."""
        return self.kind == CounterKind.SHARE and self.p95 >= NEAR_LIMIT


@dataclass(frozen=True, kw_only=True)
class CollectedCounters:
    """The counters of a run, by number of the workload, and notes on their reading."""

    workloads: dict[int, WorkloadCounters] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def figures_of(counters: WorkloadCounters) -> tuple[CounterFigures, ...]:
    """The figures of all counters, resources first, the fullest first."""
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


def counter_label(name: str, host: str) -> str:
    """Name and host of a counter: CPU of db1."""
    return f"{name} of {host}" if host else name


def value_text(value: float, unit: str) -> str:
    """A value with its unit: 97 %, 1.20 MB/s, 12.3/s, 5."""
    if unit == SHARE_UNIT:
        return f"{100 * value:.0f} %"
    if unit.startswith("bytes"):
        return size(round(value)) + unit.removeprefix("bytes")
    text = three_digits(value) if math.isfinite(value) else str(value)
    if not unit:
        return text
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}"


def grid_values(
    points: Sequence[tuple[float, float]], begin: float, step_s: float, count: int
) -> Floats:
    """The values of points at `count` times from `begin` on; nan if there is none."""
    values = np.full(count, np.nan)
    for at, value in points:
        place = round((at - begin) / step_s)
        if 0 <= place < count:
            values[place] = value
    return values
