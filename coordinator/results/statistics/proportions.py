"""Fractions of iterations that were bad, with 95 % intervals.

Wilson's score interval (Journal of the American Statistical Association 22, 1927). Failures of one
moment resemble each other, so the iterations count as fewer: as many as would be as uncertain if
they were independent, by the variance between blocks of time (`block_division`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.block_division import division_of

Ints = NDArray[np.int64]

#: Normal deviate of a two-sided 95 % interval.
_Z = 1.96


def design_effect(bad: Ints, counts: Ints) -> float:
    """Return the variance of the number of bad iterations, divided by the variance if independent.

    `bad` and `counts`: bad and all iterations per bin of time; bins without load at both ends are
    left out. At least 1; 1 also if there are too few bins, or if no iteration is bad, or all are.
    """
    busy = np.flatnonzero(counts)
    if not len(busy):
        return 1.0
    inside = slice(busy[0], busy[-1] + 1)
    division = division_of(np.stack((counts[inside] - bad[inside], bad[inside]), axis=1))
    total = float(counts.sum())
    share = 1 - float(bad.sum()) / total
    if division is None or not 0 < share < 1:
        return 1.0
    independent = total * share * (1 - share)
    return max(1.0, *(variance / independent for variance, _ in division.variances(share)))


def share_interval(bad: float, count: float, effect: float = 1.0) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the fraction `bad` / `count`; (0, 1) if `count` is 0.

    `effect`: see `design_effect`. The interval always includes the fraction itself.
    """
    if not count:
        return 0.0, 1.0
    size, share = count / effect, bad / count
    middle = share + _Z * _Z / (2 * size)
    half = _Z * math.sqrt(share * (1 - share) / size + _Z * _Z / (4 * size * size))
    whole = 1 + _Z * _Z / size
    # neither bound excludes what was seen
    low, high = (middle - half) / whole, (middle + half) / whole
    return min(max(0.0, low), share), max(min(1.0, high), share)


def usual_number(bad: int, count: int, future: int, effect: float = 1.0) -> tuple[float, float]:
    """Return the least and greatest number of bad iterations to expect, with 95 %, in a later load.

    The later load has `future` iterations and is as bad as the load in which `bad` of `count`
    (above 0) were bad. `effect`: see `design_effect`. Both the uncertainty of that fraction and
    chance in the later load widen the range.
    """
    share = bad / count
    low, high = share_interval(bad, count, effect)
    chance = _Z * _Z * future * share * (1 - share) * effect
    return (
        max(0.0, future * share - math.hypot(future * (share - low), math.sqrt(chance))),
        min(float(future), future * share + math.hypot(future * (high - share), math.sqrt(chance))),
    )
