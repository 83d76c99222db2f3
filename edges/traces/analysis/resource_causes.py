"""Counters of the system under test that are clearly higher while slow iterations run.

Both have a course over time, so that neighbouring iterations are not independent. A difference is
therefore compared with the differences after the counter was moved along the time axis, round its
end (Harris, A shift test for independence in generic time series, 2020). The greatest of all
counters at each shift corrects for their number (Westfall and Young, Resampling-based multiple
testing, 1993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.formatting import plain
from osbench.coordinator.results.accounting.counter_figures import (
    SHARE_UNIT,
    CounterKind,
    counter_label,
    value_text,
)
from osbench.edges.traces.analysis.features import Ints
from osbench.edges.traces.counters.counter_series import CounterSeries, WorkloadCounters

Floats = NDArray[np.float64]

#: Shifts that a verdict takes at least.
_FEWEST_SHIFTS = 50
#: Correlation of the times of slow iterations with themselves from which on a shift is left out:
#: bursts may be periodic. Shifts next to 0 count, since chance puts them there, too.
_ALIKE = 0.5
#: Corrected p-value of a clear difference.
_P = 0.04
#: A resource that causes slowness is nearly full, and fuller than otherwise by so much.
_FULL, _FULLER = 0.75, 0.15
#: A queue is so many times as long as otherwise; one whose values are shares has this value.
_TIMES, _WAITING = 3.0, 0.1
#: Part of the time axis on which a counter has to be known.
_KNOWN = 0.8
#: Counters that are named.
_NAMED = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class IterationCounters:
    """Counters of the system under test by workload, and times of the rows of a feature table."""

    #: By number of the group.
    groups: Mapping[int, WorkloadCounters]
    #: When the iteration of each row started and ended, seconds after t0; nan if not known.
    started_s: Floats
    ended_s: Floats


@dataclass(frozen=True, kw_only=True)
class ResourceCause:
    """A counter of the system under test that is clearly higher while slow iterations run.

    It has the mean values then and while other iterations run, in the unit `unit`.
    """

    name: str
    host: str
    kind: str
    unit: str
    #: Mean while they run, and while others do.
    slow: float
    others: float
    #: p-value, corrected for the number of counters.
    p: float

    def words(self, host: str) -> str:
        """Return text on the counter: its mean while slow iterations ran, and while others ran.

        If the counter is of the host `host`, the text says that it is the host of that span.
        """
        slow, others = value_text(self.slow, self.unit), value_text(self.others, self.unit)
        of_it = ", the host of that span," if _is_host(self.host, host) else ""
        label = plain(counter_label(self.name, self.host))
        return f"{label}{of_it} was at {slow} (others: {others})"


def resource_causes(
    counters: WorkloadCounters, slow: tuple[Floats, Floats], others: tuple[Floats, Floats]
) -> tuple[ResourceCause, ...]:
    """Return the counters that are clearly higher while slow iterations run.

    `slow` and `others` are (starts, ends) of iterations, seconds after t0; nan if unknown. Clearly:
    beyond chance, and by much. Only resources and queues with few missing values are tested.
    Resources come first, each kind by p-value. Empty also without times, or if the load was short.
    """
    series = [one for one in counters.series if _is_tested(one)]
    if not series:
        return ()
    points = len(series[0].values)
    weights = [_weights(*one, counters.step_s, points) for one in (slow, others)]
    if not all(one.sum() for one in weights):
        return ()
    weights = [one / one.sum() for one in weights]
    apart = weights[0] - weights[1]
    shifts = _shifts(apart)
    if len(shifts) < _FEWEST_SHIFTS:
        return ()
    table = np.column_stack([_filled_values(one.values) for one in series])
    means = np.array([one @ table for one in weights])
    differences = _at_shifts(apart, table)
    spread = differences[shifts].std(axis=0)
    # a counter that does not move has no difference
    spread[spread < 1e-12] = np.inf
    greatest = (differences[shifts] / spread).max(axis=1)
    p = (1 + (greatest[:, None] >= differences[0] / spread).sum(axis=0)) / (1 + len(shifts))
    found = [
        ResourceCause(
            name=one.name,
            host=one.host,
            kind=one.kind.value,
            unit=one.unit,
            slow=float(means[0, at]),
            others=float(means[1, at]),
            p=float(p[at]),
        )
        for at, one in enumerate(series)
        if p[at] < _P and _is_much(one, float(means[0, at]), float(means[1, at]))
    ]
    return tuple(sorted(found, key=lambda one: (one.kind != CounterKind.SHARE, one.p, -one.slow)))


def _shifts(weights: Floats) -> Ints:
    """Return shifts, in steps, at which slow iterations would not lie as they do now.

    Shifts next to 0 are included, 0 is not.
    """
    alike = _at_shifts(weights, weights[:, None])[:, 0] >= _ALIKE * float(weights @ weights)
    other = np.flatnonzero(~alike)
    if len(other):
        # those before the first and after the last other shift are next to 0, round the end
        alike[: other[0]] = alike[other[-1] :] = False
    alike[0] = True
    return np.flatnonzero(~alike)


def _at_shifts(weights: Floats, table: Floats) -> Floats:
    """Return for each shift (row) the weighted sums of the columns of `table`, moved by it.

    Columns continue at the other end.
    """
    # the theorem of convolution
    product = np.fft.rfft(weights)[:, None] * np.conj(np.fft.rfft(table, axis=0))
    return np.asarray(np.fft.irfft(product, len(weights), axis=0), np.float64)


def resource_sentence(causes: Sequence[ResourceCause], host: str) -> str:
    """Return text on the first two of `causes`, counters of `host` before others.

    "" without causes.
    """
    if not causes:
        return ""
    ordered = sorted(causes, key=lambda one: not _is_host(one.host, host))
    said = "; ".join(one.words(host) for one in ordered[:_NAMED])
    return f" While they ran, {said}."


def _is_host(one: str, other: str) -> bool:
    """Return whether two names denote the same host; one may lack the domain.

    False if a name is empty. IP addresses must be equal.
    """
    if not one or not other:
        return False
    if one == other:
        return True
    parts = one.partition("."), other.partition(".")
    named = not any(host[:1].isdigit() for host in (one, other))
    return named and parts[0][0] == parts[1][0] and not (parts[0][2] and parts[1][2])


def _is_tested(series: CounterSeries) -> bool:
    known = np.isfinite(series.values)
    return series.kind is not CounterKind.FLOW and len(known) > 0 and known.mean() >= _KNOWN


def _is_much(series: CounterSeries, slow: float, others: float) -> bool:
    if series.kind is CounterKind.SHARE:
        return slow >= _FULL and slow - others >= _FULLER
    least = _WAITING if series.unit == SHARE_UNIT else 0.0
    return slow >= max(_TIMES * others, least) and slow > others


def _filled_values(values: Floats) -> Floats:
    known = np.isfinite(values)
    return np.where(known, values, values[known].mean())


def _weights(started_s: Floats, ended_s: Floats, step_s: float, points: int) -> Floats:
    """Return for each step of the time axis how many iterations run in it, weighted.

    `points`: number of steps, of `step_s` seconds from t0. An iteration weighs 1 in all, spread
    evenly over its steps. Iterations without times, or outside the axis, are left out.
    """
    known = np.isfinite(started_s) & np.isfinite(ended_s)
    first: Ints = np.rint(started_s[known] / step_s).astype(np.int64)
    last: Ints = np.rint(ended_s[known] / step_s).astype(np.int64)
    inside = (last >= 0) & (first < points)
    first, last = np.clip(first[inside], 0, points - 1), np.clip(last[inside], 0, points - 1)
    each = 1.0 / (last - first + 1)
    changes = np.zeros(points + 1)
    np.add.at(changes, first, each)
    np.add.at(changes, last + 1, -each)
    return np.maximum(np.cumsum(changes)[:points], 0.0)
