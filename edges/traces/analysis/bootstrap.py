"""Confidence intervals and p-values of differences between two groups of traces, by resampling.

Intervals are the percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap,
1993, chapter 13), with whole clusters where traces are not independent (Davison and Hinkley,
Bootstrap Methods and their Application, 1997, section 3.8). p-values are from a permutation test
(Efron and Tibshirani, chapter 15), corrected for the number of keys by Benjamini and Hochberg
(Journal of the Royal Statistical Society B 57, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DRAWS = 1000
_PERMUTATIONS = 2000
#: ... or this many per test that is corrected for, so that the corrected p-value can be below
#: 0.05 even if one or two permutations reach the observed difference.
_PERMUTATIONS_A_TEST = 40
#: Most traces of each group that are sampled; more would make intervals narrower than necessary.
_MOST = 3000
_MOST_PERMUTED = 1000
#: ... and for more than `_MANY` permutations, to limit the run time.
_MANY, _FEWER_PERMUTED = 10_000, 400
_BOUNDS = (2.5, 97.5)
#: Least number of clusters for intervals of shares: samples of fewer hardly vary.
_FEWEST = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference:
    """Difference of the means of two groups by column: 95 % intervals and corrected p-values.

    In the unit of the columns; shares are fractions of the sum of all columns.
    """

    low: Floats
    high: Floats
    #: For each column's share in the sum of all columns.
    share_low: Floats
    share_high: Floats
    #: For the sum.
    total_low: float
    total_high: float
    #: Corrected p-value by column.
    p: Floats


def difference(
    slow: Floats,
    base: Floats,
    seed: int = 0,
    *,
    clusters: Ints | None = None,
    two_sided: bool = False,
    tests: int = 0,
) -> Difference:
    """Compare the means of two groups of traces, column by column; neither may be empty.

    The groups have one row per trace, with columns that sum to the duration. The null hypothesis is
    that the mean of `slow` is not greater, with `two_sided` that the means are equal. `clusters`
    has a number for each row of `slow`: rows with the same number are resampled together. `tests`
    is the number of columns before the greatest differences were selected, 0 without selection:
    p-values are corrected for all of them. The same arguments give the same result.
    """
    chance = np.random.default_rng(seed)
    if clusters is None:
        clusters = np.arange(len(slow))
    slow, clusters = _some(slow, clusters, _MOST, chance)
    base, alone = _some(base, np.arange(len(base)), _MOST, chance)
    drawn = _means(slow, clusters, chance) - _means(base, alone, chance)
    total = drawn.sum(axis=1)
    low, high = np.percentile(drawn, _BOUNDS, axis=0)
    share_low, share_high = _share_bounds(drawn, total, int(clusters.max()) + 1)
    total_low, total_high = np.percentile(total, _BOUNDS)
    tests = max(tests, slow.shape[1])
    permutations = max(_PERMUTATIONS, _PERMUTATIONS_A_TEST * tests)
    p = _permutation_p(slow, base, clusters, chance, two_sided, permutations)
    return Difference(
        low=low,
        high=high,
        share_low=share_low,
        share_high=share_high,
        total_low=float(total_low),
        total_high=float(total_high),
        p=corrected_p(p, tests),
    )


def _share_bounds(drawn: Floats, total: Floats, clusters: int) -> tuple[Floats, Floats]:
    """Return 95 % bounds (low, high) of each column's fraction of the sum of all columns.

    `drawn`: a resample of the differences per row, `total` its sums. The bounds are 0 and 1 if a
    sum is 0, or if there are fewer than `_FEWEST` `clusters`.
    """
    # if the sum may be 0, shares of it are undefined
    safe = np.where(np.abs(total) > 1e-12, total, np.nan)
    shares = drawn / safe[:, None]
    if np.isnan(shares).any() or clusters < _FEWEST:
        return np.zeros(drawn.shape[1]), np.ones(drawn.shape[1])
    low, high = np.percentile(shares, _BOUNDS, axis=0)
    return low, high


def corrected_p(p: Floats, tests: int = 0) -> Floats:
    """Return p-values corrected by Benjamini and Hochberg's procedure, in the order of `p`.

    `tests` is the number of p-values there were before some were selected: missing ones count as 1.
    """
    count = len(p)
    order = np.argsort(p)
    scaled = p[order] * max(tests, count) / np.arange(1, count + 1)
    least = np.minimum.accumulate(scaled[::-1])[::-1]
    result = np.empty(count)
    result[order] = np.minimum(least, 1.0)
    return result


def _some(
    rows: Floats, clusters: Ints, most: int, chance: np.random.Generator
) -> tuple[Floats, Ints]:
    """Sample at most `most` rows without replacement, and number their clusters anew from 0."""
    if len(rows) > most:
        drawn = chance.choice(len(rows), most, replace=False)
        rows, clusters = rows[drawn], clusters[drawn]
    return rows, np.unique(clusters, return_inverse=True)[1]


def _means(rows: Floats, clusters: Ints, chance: np.random.Generator) -> Floats:
    """Return the means of the columns in `_DRAWS` resamples, one row per resample.

    `clusters` has a number per row: rows with the same number are drawn together, with replacement.
    """
    count = int(clusters.max()) + 1
    found = np.empty((_DRAWS, rows.shape[1]))
    for at in range(0, _DRAWS, 100):
        picked = chance.integers(0, count, (100, count)) + np.arange(100)[:, None] * count
        times = np.bincount(picked.ravel(), minlength=100 * count).reshape(100, count)
        weights = times[:, clusters]
        found[at : at + 100] = weights @ rows / weights.sum(axis=1, keepdims=True)
    return found


def _permutation_p(
    slow: Floats,
    base: Floats,
    clusters: Ints,
    chance: np.random.Generator,
    two_sided: bool,
    permutations: int,
) -> Floats:
    """Return a p-value, not corrected, for each column, from at least `permutations` permutations.

    Whole clusters of `slow` and single rows of `base` are permuted between the groups.
    """
    most = _MOST_PERMUTED if permutations <= _MANY else _FEWER_PERMUTED
    slow, clusters = _some(slow, clusters, most, chance)
    base, alone = _some(base, np.arange(len(base)), most, chance)
    first = int(clusters.max()) + 1
    unit = np.concatenate((clusters, first + alone))
    sizes = np.bincount(unit)
    both = np.concatenate((slow, base))
    both = both - both.mean(axis=0)
    sums = np.zeros((len(sizes), both.shape[1]))
    np.add.at(sums, unit, both)
    labels = np.zeros(len(sizes), np.float32)
    labels[:first] = 1

    def apart(sums: Floats, count: Floats) -> Floats:
        # the total of both sides is 0, so the sum of one side gives the difference of means
        found = sums * (1 / count + 1 / (len(both) - count))
        return np.abs(found) if two_sided else found

    taken = np.array([[len(slow)]], np.float64)
    seen = apart(both[: len(slow)].sum(axis=0)[None], taken)
    # equal differences must not be missed because of rounding
    seen = seen - apart(1e-5 * np.abs(both).sum(axis=0)[None], taken)
    narrow = np.column_stack((sums, sizes)).astype(np.float32)
    reached = np.zeros(both.shape[1])
    rounds = -(-permutations // 200)
    for _ in range(rounds):
        order = chance.permuted(np.tile(labels, (200, 1)), axis=1)
        drawn = (order @ narrow).astype(np.float64)
        reached += (apart(drawn[:, :-1], drawn[:, -1:]) >= seen).sum(axis=0)
    p: Floats = (1 + reached) / (1 + 200 * rounds)
    return p
