"""Compares a band of slow traces, such as the slowest 1 %, with the traces around the median."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.edges.traces.analysis.features import Features, Ints
from osbench.edges.traces.analysis.quantiles import ENOUGH
from osbench.edges.traces.analysis.slow_causes import (
    Cause,
    CauseSearch,
    Middle,
    RepeatedCalls,
    thinned_rows,
)

_EXEMPLARS = 3


@dataclass(frozen=True, kw_only=True)
class BandExample:
    """A trace shown as an example: id, iteration, duration, and whether its spans are kept."""

    trace_id: str
    #: -1 if it is not of an iteration.
    iteration: int
    duration_s: float
    #: Its spans are kept, so it can be shown.
    kept: bool


@dataclass(frozen=True, kw_only=True)
class Band:
    """Slow traces of a band (such as p99+), or failed ones, compared with those around the median.

    Made by `compare`: sizes, durations and excess in seconds, the causes, and examples.
    """

    name: str
    #: Number of traces in the band, and in the middle.
    traces: int
    base_traces: int
    #: Shortest and longest.
    from_s: float
    to_s: float
    mean_s: float
    base_s: float
    excess_s: float
    interval_s: tuple[float, float]
    #: There are enough traces to compare; if not, there are no causes.
    enough: bool
    #: Largest excess first.
    causes: tuple[Cause, ...] = ()
    #: Clear causes of several keys each; `causes` also has their keys, if among the largest.
    repeated: tuple[RepeatedCalls, ...] = ()
    #: Excess that is not among the causes.
    rest_s: float = 0.0
    exemplars: tuple[BandExample, ...] = ()

    @property
    def clear(self) -> Cause | None:
        """The clear cause (see `Cause.clear`) with the largest excess; None without any."""
        return next(iter(self.named), None)

    @property
    def named(self) -> tuple[Cause, ...]:
        """All clear causes (see `Cause.clear`), largest excess first; empty if none is clear."""
        return tuple(cause for cause in self.causes if cause.clear)


def compare(
    middle: Middle, name: str, slow: Ints, between: tuple[float, float], shown: int = 10
) -> Band:
    """Compare slow traces with those around the median; the result has at most `shown` causes.

    `slow`: rows of the slow traces. `name` and `between`: name and percentiles of the band; for
    failures both percentiles are nan. With fewer than `ENOUGH` traces on either side `enough` is
    False, there are no causes, and both bounds of `interval_s` are the excess itself.
    """
    features = middle.features
    total = features.total / 1e9
    enough = len(slow) >= ENOUGH and len(middle.base) >= ENOUGH
    excess = _mean(total[slow]) - _mean(total[middle.base])
    band = {
        "name": name,
        "traces": len(slow),
        "base_traces": len(middle.base),
        "from_s": float(total[slow].min()) if len(slow) else 0.0,
        "to_s": float(total[slow].max()) if len(slow) else 0.0,
        "mean_s": _mean(total[slow]),
        "base_s": _mean(total[middle.base]),
        "excess_s": excess,
        "exemplars": exemplars(features, slow),
    }
    if not enough:
        return Band(**band, interval_s=(excess, excess), enough=False)  # type: ignore[arg-type]  # one dict of several types
    comparison = CauseSearch(middle, slow, between)
    causes = comparison.causes()
    return Band(
        **band,  # type: ignore[arg-type]  # one dict of several types
        enough=True,
        interval_s=(comparison.found.total_low, comparison.found.total_high),
        causes=tuple(causes[:shown]),
        repeated=comparison.repetitions(),
        rest_s=excess - sum(cause.excess_s for cause in causes[:shown]),
    )


def exemplars(features: Features, rows: Ints) -> tuple[BandExample, ...]:
    """Return up to three typical traces of some rows: nearest to the medians of all keys.

    Traces whose spans are kept come first. Of more than 1,000 rows, 1,000 at equal distances are
    examined. Empty without rows.
    """
    rows = thinned_rows(rows, 1000)
    if not len(rows):
        return ()
    times = features.dense(rows, features.time)
    apart = np.abs(times - np.median(times, axis=0)).sum(axis=1)
    order = np.lexsort((rows, apart, ~features.kept[rows]))
    return tuple(exemplar(features, at) for at in rows[order[:_EXEMPLARS]].tolist())


def exemplar(features: Features, at: int) -> BandExample:
    """Return the trace in row `at` as an example: id, iteration, duration, whether it is kept."""
    return BandExample(
        trace_id=features.traces[at],
        iteration=int(features.iteration[at]),
        duration_s=float(features.total[at]) / 1e9,
        kept=bool(features.kept[at]),
    )


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
