"""How sure a difference between two groups of traces is: by drawing from them again.

Intervals are the percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap,
1993, chapter 13), of whole clusters where some traces stand or fall together (Davison and Hinkley,
Bootstrap Methods and their Application, 1997, section 3.8). p-values are those of a permutation
test (Efron and Tibshirani, chapter 15), corrected for the number of keys by Benjamini and Hochberg
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
#: ... or so many for each test that is corrected for: the least p-value, 1 in all of them, can be
#: below 0.05 then, even with a permutation or two that reach as far.
_PERMUTATIONS_A_TEST = 40
#: Traces of each group that are drawn from; more make intervals narrower than they need be.
_MOST = 3000
_MOST_PERMUTED = 1000
#: ... and where there are more permutations than so many, as that would take too long.
_MANY, _FEWER_PERMUTED = 10_000, 400
_BOUNDS = (2.5, 97.5)
#: Clusters without which nothing is known of shares: what is drawn from less hardly varies.
_FEWEST = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference:
    """Means of one group less those of another, by column, with 95 % intervals."""

    low: Floats
    high: Floats
    #: Of each column's share in the sum of all.
    share_low: Floats
    share_high: Floats
    #: Of the sum.
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
    """Compare two groups, a line each, with columns that sum to what is to be explained.

    p-values are those of the first group's mean being no greater, `two_sided` of no other.
    `clusters` has a number for each line of the first group: those with the same number are drawn
    together. `tests` is the number of columns there were before these were chosen for their
    differences, 0 if none was left out: p-values are corrected for all of them.
    """
    chance = np.random.default_rng(seed)
    if clusters is None:
        clusters = np.arange(len(slow))
    slow, clusters = _some(slow, clusters, _MOST, chance)
    base, alone = _some(base, np.arange(len(base)), _MOST, chance)
    drawn = _means(slow, clusters, chance) - _means(base, alone, chance)
    total = drawn.sum(axis=1)
    # where the sum may be nothing, nothing is known of a share of it
    safe = np.where(np.abs(total) > 1e-12, total, np.nan)
    shares = drawn / safe[:, None]
    low, high = np.percentile(drawn, _BOUNDS, axis=0)
    if np.isnan(shares).any() or clusters.max() + 1 < _FEWEST:
        share_low, share_high = np.zeros(slow.shape[1]), np.ones(slow.shape[1])
    else:
        share_low, share_high = np.percentile(shares, _BOUNDS, axis=0)
    total_low, total_high = np.percentile(total, _BOUNDS)
    tests = max(tests, slow.shape[1])
    permutations = max(_PERMUTATIONS, _PERMUTATIONS_A_TEST * tests)
    p = _permuted(slow, base, clusters, chance, two_sided, permutations)
    return Difference(
        low=low,
        high=high,
        share_low=share_low,
        share_high=share_high,
        total_low=float(total_low),
        total_high=float(total_high),
        p=corrected(p, tests),
    )


def corrected(p: Floats, tests: int = 0) -> Floats:
    """p-values of Benjamini and Hochberg's procedure, in the order given.

    Of more `tests` than there are p-values, those that are missing count as 1.
    """
    count = len(p)
    order = np.argsort(p)
    scaled = p[order] * max(tests, count) / np.arange(1, count + 1)
    least = np.minimum.accumulate(scaled[::-1])[::-1]
    found = np.empty(count)
    found[order] = np.minimum(least, 1.0)
    return found


def _some(
    rows: Floats, clusters: Ints, most: int, chance: np.random.Generator
) -> tuple[Floats, Ints]:
    """Rows drawn without replacement, with their clusters, numbered from 0."""
    if len(rows) > most:
        drawn = chance.choice(len(rows), most, replace=False)
        rows, clusters = rows[drawn], clusters[drawn]
    return rows, np.unique(clusters, return_inverse=True)[1]


def _means(rows: Floats, clusters: Ints, chance: np.random.Generator) -> Floats:
    """The mean of each column in each of many draws with replacement, of clusters of rows."""
    count = int(clusters.max()) + 1
    found = np.empty((_DRAWS, rows.shape[1]))
    for at in range(0, _DRAWS, 100):
        picked = chance.integers(0, count, (100, count)) + np.arange(100)[:, None] * count
        times = np.bincount(picked.ravel(), minlength=100 * count).reshape(100, count)
        weights = times[:, clusters]
        found[at : at + 100] = weights @ rows / weights.sum(axis=1, keepdims=True)
    return found


def _permuted(
    slow: Floats,
    base: Floats,
    clusters: Ints,
    chance: np.random.Generator,
    two_sided: bool,
    permutations: int,
) -> Floats:
    """p-values of the means' difference, where whole clusters change sides."""
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
        # the sums of both sides are 0, so those of one side tell the difference of means
        found = sums * (1 / count + 1 / (len(both) - count))
        return np.abs(found) if two_sided else found

    taken = np.array([[len(slow)]], np.float64)
    seen = apart(both[: len(slow)].sum(axis=0)[None], taken)
    # a difference that is the same but for rounding is as great
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
