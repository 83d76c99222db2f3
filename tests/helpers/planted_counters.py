"""Counters with known values, as a run keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osbench.coordinator.results.accounting.counter_figures import SHARE_UNIT, CounterKind
from osbench.edges.traces.counters.counter_series import CounterSeries, WorkloadCounters


def share(name: str, host: str, values: Sequence[float]) -> CounterSeries:
    """The used part of a resource."""
    return CounterSeries(
        name=name,
        host=host,
        kind=CounterKind.SHARE,
        unit=SHARE_UNIT,
        values=np.array(values, float),
    )


def queue(name: str, host: str, values: Sequence[float], unit: str = "") -> CounterSeries:
    """A queue length, or a rate of waits."""
    return CounterSeries(
        name=name, host=host, kind=CounterKind.QUEUE, unit=unit, values=np.array(values, float)
    )


def counters_of(*series: CounterSeries, step_s: float = 1.0) -> WorkloadCounters:
    """Counters of a load that is as long as they are."""
    points = len(series[0].values) if series else 0
    return WorkloadCounters(step_s=step_s, series=series, elapsed_s=max(points - 1, 0) * step_s)


def wandering(chance: np.random.Generator, points: int, hold: float = 0.9) -> np.ndarray:
    """A course without a cause: each value is near the one before, of standard deviation 1."""
    found = np.empty(points)
    found[0] = chance.normal()
    for at in range(1, points):
        found[at] = hold * found[at - 1] + np.sqrt(1 - hold**2) * chance.normal()
    return found
