"""Finds the reason why 95 % intervals of a run's percentiles are missing, unbounded or wide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from osbench.coordinator.results.statistics.block_division import (
    COARSE,
    Division,
    coarser,
    correlation,
)

#: Correlation of the median's blocks with time from which latency drifts; of independent blocks
#: less than one run in a thousand has as much.
_DRIFTS = 0.7
#: Correlation of neighbouring blocks from which dependence makes intervals wide.
_DEPENDS = 0.5
#: Deviates of an interval from many blocks, and the greatest multiple of a run's length to advise.
_DEVIATES, _MOST_TIMES = 2.1, 1000.0

Ranks = tuple[float, float] | None


class DoubtCause(Enum):
    """Reason why a run does not bound percentiles, or bounds them badly; the value is a phrase."""

    SHORT = "iterations were scheduled over less than 5 s"
    ROSE = "latency rose through the load"
    FELL = "latency fell through the load"
    STRETCHES = "latency kept its level for long stretches"
    FEW = "too few separate moments were that slow"


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Percentiles (0 to 100) of a run without interval or upper bound, and the reason."""

    cause: DoubtCause
    #: Percentiles without an interval.
    missing: tuple[float, ...] = ()
    #: Percentiles without an upper bound.
    unbounded: tuple[float, ...] = ()
    #: Seconds of a load that would bound the least of these; None: not known.
    bounded_by_s: float | None = None

    @property
    def note(self) -> str:
        """The doubt as a message without full stop, with a sufficient length of load if known."""
        if self.cause is DoubtCause.SHORT:
            return f"no intervals: {self.cause.value}"
        which = []
        if self.missing:
            which.append(f"no interval of {_names(self.missing)}")
        if self.unbounded:
            which.append(f"no upper bound of {_names(self.unbounded)}")
        if not which:
            return f"{self.cause.value}: percentiles depend on when it began and ended"
        advice = ""
        if self.bounded_by_s is not None:
            advice = (
                f"; p{min(self.unbounded):g} takes a load of about {_length(self.bounded_by_s)}"
            )
        return f"{' and '.join(which)}: {self.cause.value}{advice}"


def doubt(
    division: Division | None, total: int, span_s: float, ranks: Mapping[float, Ranks]
) -> Doubt | None:
    """Return why percentiles lack an interval or upper bound, or that latency drifted.

    None if neither. `ranks`: ranks of the interval by percentile (0 to 100), None if it has none.
    `total`: count of iterations; `span_s`: seconds of load; `division`: None if the load was too
    short, which is then the reason.
    """
    missing = tuple(percent for percent, found in ranks.items() if found is None)
    if division is None:
        return Doubt(cause=DoubtCause.SHORT, missing=missing)
    unbounded = tuple(percent for percent, found in ranks.items() if found and math.isinf(found[1]))
    drift = _drift(division)
    if drift is not None:
        return Doubt(cause=drift, missing=missing, unbounded=unbounded)
    if not missing and not unbounded:
        return None
    share = min(unbounded or missing) / 100
    lasting = correlation(division.deviations(share)) >= _DEPENDS
    return Doubt(
        cause=DoubtCause.STRETCHES if lasting else DoubtCause.FEW,
        missing=missing,
        unbounded=unbounded,
        bounded_by_s=_bounded_by_s(division, total, span_s, share) if unbounded else None,
    )


def _drift(division: Division) -> DoubtCause | None:
    if division.blocks < COARSE:
        return None
    levels = coarser(division.deviations(0.5)) / np.maximum(coarser(division.sizes), 1.0)
    if not levels.std():
        return None
    by = float(np.corrcoef(levels, np.arange(COARSE))[0, 1])
    # more iterations below the median of the run mean lower latencies
    return None if abs(by) < _DRIFTS else DoubtCause.FELL if by > 0 else DoubtCause.ROSE


def _bounded_by_s(division: Division, total: int, span_s: float, share: float) -> float | None:
    """Return the seconds of load that would give a percentile an upper bound, or None.

    `share`: the percentile as a fraction. None if the run is long enough by this estimate, or if
    the load would be more than `_MOST_TIMES` times as long. The standard error of a rank, as a
    fraction of all ranks, falls with the root of the length.
    """
    variance = max(total * share * (1 - share), *(one for one, _ in division.variances(share)))
    times = ((_DEVIATES * math.sqrt(variance) + 1) / (total * (1 - share))) ** 2
    return times * span_s if 1 < times <= _MOST_TIMES else None


def _length(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _names(percents: Sequence[float]) -> str:
    *first, last = (f"p{percent:g}" for percent in sorted(percents))
    return f"{', '.join(first)} and {last}" if first else last
