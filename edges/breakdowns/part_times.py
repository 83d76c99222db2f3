"""Times and counts of one part of the results, and its row in a report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.histogram import Histogram
from osbench.coordinator.results.accounting.breakdown import BreakdownRow

Ints = NDArray[np.int64]


class PartTimes:
    """Durations of a part's successful iterations or requests, ns, and how many failed."""

    __slots__ = ("failed", "ok")

    def __init__(self) -> None:
        self.ok = Histogram()
        self.failed = 0

    def add(self, ok: Ints, failed: int) -> None:
        """Count durations of successful ones, and `failed` others."""
        self.ok.add(ok)
        self.failed += failed

    def merge(self, other: PartTimes) -> None:
        """Add all that `other` has counted."""
        self.ok.merge(other.ok)
        self.failed += other.failed

    @property
    def count(self) -> int:
        """Return the number of all that were counted."""
        return self.ok.count + self.failed


def rows_of(
    parts: Mapping[str, PartTimes], asked: Mapping[str, float] | None = None
) -> tuple[BreakdownRow, ...]:
    """Return a row for each part, in their order; `asked`: shares by name, from 0 to 1."""
    in_all = sum(part.count for part in parts.values())
    return tuple(
        BreakdownRow(
            name=name,
            share=part.count / in_all if in_all else 0.0,
            asked=(asked or {}).get(name),
            ok=part.ok.count,
            failed=part.failed,
            p50=_percentile(part, 50),
            p95=_percentile(part, 95),
            p99=_percentile(part, 99),
        )
        for name, part in parts.items()
    )


def _percentile(part: PartTimes, percent: float) -> float | None:
    return part.ok.percentile(percent) / 1e9 if part.ok.count else None
