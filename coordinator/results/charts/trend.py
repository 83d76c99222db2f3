"""A value over the iterations of a workload, however many, as a bounded number of points."""

from __future__ import annotations

import numpy as np

#: Points at most; Rally's charts have as many.
POINTS = 1000


class Trend:
    """Means over runs of successive iteration numbers.

    A run is one iteration at first, and twice as long each time more than `POINTS` would be
    needed. What it comes to does not depend on the order in which iterations are added.
    """

    __slots__ = ("_counts", "_sums", "_width")

    def __init__(self) -> None:
        self._width = 1
        self._sums = np.zeros(POINTS)
        self._counts = np.zeros(POINTS, np.int64)

    def add(self, iteration: int, value: float) -> None:
        """Add the value of an iteration, numbered from 1."""
        while (bin_ := (iteration - 1) // self._width) >= POINTS:
            self._halve()
        self._sums[bin_] += value
        self._counts[bin_] += 1

    def shown(self) -> list[list[float]]:
        """The points: the last iteration number of each run that has values, and their mean."""
        found = np.flatnonzero(self._counts)
        means = self._sums[found] / self._counts[found]
        ends = (found + 1) * self._width
        return [[end, mean] for end, mean in zip(ends.tolist(), means.tolist(), strict=True)]

    def _halve(self) -> None:
        for counts in (self._sums, self._counts):
            counts[: POINTS // 2] = counts[::2] + counts[1::2]
            counts[POINTS // 2 :] = 0
        self._width *= 2
