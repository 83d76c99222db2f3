"""Counts of good and other iterations by time, in bounded memory, and the interval of the share."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.student_t import incomplete_beta
from osbench.plugin.statistics import design_effect

Ints = NDArray[np.int64]

#: Width of a bin at first, as a power of 2 in nanoseconds (0.27 s), and most bins: then pairs join.
BITS, BINS = 28, 8192


class GoodCounts:
    """Numbers of good iterations and of all, by bin of time; bins double with the load's length."""

    def __init__(self) -> None:
        self.good = 0
        self.every = 0
        self._bits = BITS
        #: Iterations that are not good, and all, by bin.
        self._bins = np.zeros((2, BINS), np.int64)

    def add(self, instants: Ints, good: NDArray[np.bool_]) -> None:
        """Count iterations: when each ended, nanoseconds after t0, and whether it was good."""
        if not len(instants):
            return
        self.good += int(np.count_nonzero(good))
        self.every += len(good)
        instants = np.maximum(instants, 0)
        while int(instants.max()) >> self._bits >= BINS:
            joined = self._bins.reshape(2, -1, 2).sum(axis=2)
            self._bins = np.concatenate((joined, np.zeros_like(joined)), axis=1)
            self._bits += 1
        places = instants >> self._bits
        np.add.at(self._bins[0], places[~good], 1)
        np.add.at(self._bins[1], places, 1)
        self.__dict__.pop("interval", None)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % interval of the share of good iterations; (0, 1) without iterations."""
        return exact_interval(self.good, self.every, design_effect(*self._bins))


def exact_interval(good: float, count: float, effect: float = 1.0) -> tuple[float, float]:
    """Return the exact 95 % interval of the fraction `good` / `count`; (0, 1) if `count` is 0.

    By Clopper and Pearson (Biometrika 26, 1934), with as many iterations as are independent (Korn
    and Graubard, Survey Methodology 24, 1998). `effect`: see `design_effect`.
    """
    good, other = good / effect, (count - good) / effect

    def bound(a: float, b: float, below: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            less = incomplete_beta(a, b, middle) < below
            low, high = (middle, high) if less else (low, middle)
        return low

    return (
        bound(good, other + 1, 0.025) if good else 0.0,
        bound(good + 1, other, 0.975) if other else 1.0,
    )
