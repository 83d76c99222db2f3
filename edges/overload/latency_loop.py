"""The loop of load against latency: in the order of time it shows whether a service comes back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.drill_rows import together
from osbench.coordinator.results.statistics.latency_matrix import (
    Extent,
    LatencyMatrix,
    percentile_of,
)
from osbench.edges.overload.overload_figures import LoopPoint

#: Points at most, about.
_POINTS = 120
#: Rows of counts: all arrivals, iterations that ran, and iterations that ran and did not succeed.
_ARRIVED, _RAN, _BAD = 0, 1, 2


class LatencyLoop:
    """Counts arrivals and the times of all iterations that ran, also of failed ones, over time."""

    def __init__(self) -> None:
        self._took = LatencyMatrix()
        self._counts = LatencyMatrix()

    def add(self, columns: Columns) -> None:
        """Count result rows by their due time; a time is from start to end, without think time."""
        ran = columns.outcome <= Outcome.TIMED_OUT
        bad = ran & (columns.outcome != Outcome.OK)
        for kind, rows in ((_ARRIVED, np.ones(len(columns), np.bool_)), (_RAN, ran), (_BAD, bad)):
            if rows.any():
                self._counts.add_buckets(
                    Extent.of(columns.due[rows]),
                    Extent.of(np.full(np.count_nonzero(rows), kind, np.int64)),
                )
        took = columns.ended - columns.started - columns.idle
        self._took.add(columns.due[ran], took[ran])

    def points(self, until_s: float) -> Iterator[LoopPoint]:
        """Yield the points of a load until a time (s after t0), each of an equal time."""
        counts, width_s = self._counts, self._counts.width_s
        times = max(1, -(-counts.used // _POINTS))
        by_kind = [together(self._kind(kind), times) for kind in (_ARRIVED, _RAN, _BAD)]
        medians = self._medians_s(round(times * width_s / self._took.width_s))
        for at, (arrived, ran, bad) in enumerate(zip(*by_kind, strict=True)):
            from_s = at * times * width_s
            lasted_s = min(until_s - from_s, times * width_s)
            # a rest of a bin has no rate
            if arrived and lasted_s > times * width_s / 2:
                yield LoopPoint(
                    at_s=from_s,
                    offered_per_s=float(arrived / lasted_s),
                    p50_s=medians[at] if at < len(medians) else None,
                    bad_share=float(bad / ran) if ran else 0.0,
                )

    def _kind(self, kind: int) -> NDArray[np.int64]:
        counts, place = self._counts.counts(), kind - self._counts.lowest
        if not 0 <= place < counts.shape[1]:
            return np.zeros(len(counts), np.int64)
        found: NDArray[np.int64] = counts[:, place]
        return found

    def _medians_s(self, each: int) -> list[float | None]:
        counts = self._took.counts()
        if not len(counts):
            return []
        sums = np.add.reduceat(counts, np.arange(0, len(counts), max(1, each)), axis=0)
        lowest = self._took.lowest
        return [percentile_of(row, lowest, 50) / 1e9 if row.any() else None for row in sums]
