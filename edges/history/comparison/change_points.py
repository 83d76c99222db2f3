"""Lasting changes of level in a series of numbers, one per run.

E-divisive (Matteson and James, Journal of the American Statistical Association 109, 2014, as in
Daly et al., ICPE 2020, and Apache Otava): the split that maximises the energy distance between the
two parts, tested against random orders of the numbers, then each part in turn. Random orders need
no distribution of the numbers; they are drawn with a fixed seed, so that results are the same in
every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Numbers below which nothing is looked for.
ENOUGH = 8
#: Numbers on either side of a change, at least.
_LEAST = 3
#: Random orders drawn at most, and how many at once.
_ORDERS, _AT_ONCE = 9999, 500
#: Orders as extreme as the series that settle that there is no change.
_SETTLED = 25


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A lasting change of level in a series, with the means of both sides and a p-value."""

    #: Place of the first number of the new level.
    at: int
    #: Means before and after it, up to the next change.
    before: float
    after: float
    #: Probability of a change as clear as this one in a series without one.
    p: float


def change_points(series: Sequence[float], significance: float) -> tuple[ChangePoint, ...]:
    """Return the lasting changes of a series, in order; empty if it is shorter than `ENOUGH`.

    A change has a p-value below `significance`, a fraction, and `_LEAST` numbers on either side.
    """
    values = np.asarray(series, np.float64)
    if len(values) < ENOUGH:
        return ()
    random = np.random.default_rng(0)
    found: dict[int, float] = {}
    parts = [(0, len(values))]
    while parts:
        begin, end = parts.pop()
        if end - begin < 2 * _LEAST:
            continue
        split, p = _best_split(values[begin:end], significance, random)
        if p < significance:
            found[begin + split] = p
            parts += [(begin, begin + split), (begin + split, end)]
    places = sorted(found)
    edges = [0, *places, len(values)]
    return tuple(
        ChangePoint(
            at=at,
            before=float(values[edges[number] : at].mean()),
            after=float(values[at : edges[number + 2]].mean()),
            p=found[at],
        )
        for number, at in enumerate(places)
    )


def _best_split(
    values: Floats, significance: float, random: np.random.Generator
) -> tuple[int, float]:
    """Return (index with which the second part of the best split begins, p-value of the split).

    Draws random orders with `random` until it is settled whether the p-value is below
    `significance`; about `_ORDERS` at most.
    """
    distances = np.abs(values[:, None] - values[None, :])
    energies = _energies(distances[None])[0]
    split, greatest = int(np.argmax(energies)), float(energies.max())
    # with few values, even the clearest change is one of few orders: do not draw in vain
    extreme = drawn = 0
    # 0 distances everywhere: no order differs from another
    if greatest <= 0:
        return split + _LEAST, 1.0
    while drawn < _ORDERS and extreme < _SETTLED:
        orders = np.array([random.permutation(len(values)) for _ in range(_AT_ONCE)])
        shuffled = distances[orders[:, :, None], orders[:, None, :]]
        extreme += int((_energies(shuffled).max(axis=1) >= greatest * (1 - 1e-12)).sum())
        drawn += _AT_ONCE
        if (extreme + 1) / (_ORDERS + 1) >= significance:
            break
    return split + _LEAST, (extreme + 1) / (drawn + 1)


def _energies(distances: Floats) -> Floats:
    """Return the energy distance of the two parts for every split: a row per order of the series.

    `distances` has, for each order, the distances of all pairs of numbers. Column k splits after
    `_LEAST` + k numbers.
    """
    size = distances.shape[1]
    first = np.arange(_LEAST, size - _LEAST + 1)
    second = size - first
    # twice the sums of distances within the first m, and within all behind them
    sums = distances.cumsum(axis=1).cumsum(axis=2)
    squares = np.einsum("kii->ki", sums)
    within_first = squares[:, first - 1]
    total = squares[:, -1:]
    up_to = sums[:, first - 1, -1]
    between = up_to - within_first
    within_second = total - 2 * up_to + within_first
    energies: Floats = (first * second / size) * (
        2 * between / (first * second)
        - within_first / (first * np.maximum(first - 1, 1))
        - within_second / (second * np.maximum(second - 1, 1))
    )
    return energies
