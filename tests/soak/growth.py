"""Whether a series grows with time: its slope, the error of the slope, and a verdict.

Samples that follow each other are alike (memory is taken in steps and kept), so that the residuals
of a line through single samples say too little of its error. The line is fitted through the means
of consecutive blocks instead, and its error comes from their residuals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from osbench.coordinator.results.statistics.student_t import quantile

#: Blocks of which the means are taken.
BLOCKS = 12
#: Share of the samples at the beginning that are left out: caches fill.
WARM_UP = 0.2
#: Of the interval of the slope.
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Slope:
    """A line through a series."""

    #: Growth, units a second, and half the width of its interval.
    per_s: float
    error_per_s: float
    #: Length of the part of the series that it is fitted to, seconds.
    length_s: float

    @property
    def growth(self) -> float:
        """Growth over the whole of that part."""
        return self.per_s * self.length_s

    @property
    def error(self) -> float:
        """Half the width of the interval of `growth`."""
        return self.error_per_s * self.length_s

    @property
    def significant(self) -> bool:
        """The series grows, by more than chance explains."""
        return self.per_s > self.error_per_s


def fit(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """The slope of a series after its warm-up. Raises ValueError where samples are too few."""
    first = math.ceil(len(times_s) * WARM_UP)
    times, found = times_s[first:], values[first:]
    if len(times) < 2 * BLOCKS or len(times_s) != len(values):
        raise ValueError(f"{len(times_s)} samples are too few: take at least {3 * BLOCKS}")
    edges = [len(times) * block // BLOCKS for block in range(BLOCKS + 1)]
    parts = [slice(low, high) for low, high in pairwise(edges)]
    x = [fmean(times[part]) for part in parts]
    y = [fmean(found[part]) for part in parts]
    middle, level = fmean(x), fmean(y)
    spread = sum((at - middle) ** 2 for at in x)
    per_s = sum((at - middle) * value for at, value in zip(x, y, strict=True)) / spread
    rest = sum((value - level - per_s * (at - middle)) ** 2 for at, value in zip(x, y, strict=True))
    freedom = BLOCKS - 2
    error = quantile(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(rest / freedom / spread)
    return Slope(per_s=per_s, error_per_s=error, length_s=times[-1] - times[0])


def grows(slope: Slope, limit: float) -> bool:
    """The series grows significantly, and by more than `limit` over its length."""
    return slope.significant and slope.growth > limit
