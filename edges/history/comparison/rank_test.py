"""Exact rank tests of two groups of runs, for many percentiles at once.

Whatever the distribution of single runs, runs of two groups without a difference could have been
divided between them in any other way. The sums of ranks in all divisions show how unusual the
actual division is; taking the greatest of all percentiles in each division allows for their number
and for how alike they are (Westfall and Young, Resampling-Based Multiple Testing, Wiley 1993). A
run that is far off counts no more than the slowest of other runs would. The interval of the shift
belongs to the test (Moses; Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Divisions that are looked at; of more, as many at random, always the same.
_MOST = 20_000
_SEED = 20_240_229


def family_p(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> list[float]:
    """Return the p-value of no difference for each row, corrected for the number of rows.

    A row of `first` or `second` has the values of one percentile in the runs of that group; a
    column belongs to the same run in all rows.
    """
    values = np.concatenate([np.asarray(first, float), np.asarray(second, float)], axis=1)
    size, runs = len(first[0]), values.shape[1]
    ranks = np.stack([_midranks(row) for row in values])
    expected = size * (runs + 1) / 2
    apart = np.abs(ranks @ _divisions(size, runs).T - expected)
    greatest = apart.max(axis=0)
    seen = np.abs(ranks[:, :size].sum(axis=1) - expected)
    return [float((greatest >= one - 1e-9).mean()) for one in seen]


def shift_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the shift, second minus first, by ranks.

    Both groups must have at least four values.
    """
    apart = np.sort(np.subtract.outer(np.asarray(second), np.asarray(first)).ravel())
    end = _significant(len(first), len(second))
    return float(apart[end - 1]), float(apart[-end])


def _midranks(values: Floats) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    upto = np.searchsorted(ordered, values, side="right")
    found: Floats = (below + upto + 1) / 2
    return found


def _divisions(size: int, runs: int) -> Floats:
    """Return divisions of `runs` runs into two groups, a row each: 1 for runs of the first group.

    The first group has `size` runs; the actual division, the first `size` runs, is the first row.
    All divisions if there are at most `_MOST`, else `_MOST` at random with a fixed seed.
    """
    if math.comb(runs, size) <= _MOST:
        chosen = np.array([*combinations(range(runs), size)])
    else:
        random = np.random.default_rng(_SEED)
        chosen = np.argsort(random.random((_MOST, runs)), axis=1)[:, :size]
        chosen[0] = np.arange(size)
    found = np.zeros((len(chosen), runs))
    np.put_along_axis(found, chosen, 1.0, axis=1)
    return found


def _significant(first: int, second: int) -> int:
    """Return how many of the smallest counts of pairs have a probability of at most 2.5 % together.

    A pair counts if its value of the second group is below its value of the first; `first` and
    `second` are the sizes of the groups.
    """
    # in how many divisions each number of pairs has the second below the first (Mann and
    # Whitney, 1947): the coefficients of a Gaussian binomial
    ways = np.array([1.0])
    for number in range(1, second + 1):
        step = first + number
        longer = np.concatenate([ways, np.zeros(step)])
        longer[step:] -= ways
        for at in range(number, len(longer)):
            longer[at] += longer[at - number]
        ways = longer[: first * number + 1]
    tail = np.cumsum(ways) / ways.sum()
    return int(np.searchsorted(tail, 0.025, side="right"))
