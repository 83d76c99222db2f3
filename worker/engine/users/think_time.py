"""Think time: how long a virtual user waits between two iterations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

#: How often a value outside the bounds is drawn again, before it is moved to the nearest bound.
DRAWS = 20


def thinking(wish: Mapping[str, Any]) -> Callable[[], int] | None:
    """A function that draws think times, nanoseconds; None for none.

    `wish` is the task's key `think`: min and max (seconds; max is min unless given), and
    distribution: "uniform", "normal" (the middle of the two as its mean, a sixth of the way
    between them as its deviation) or "exponential" (the middle as its mean). All are within min
    and max.
    """
    if not wish:
        return None
    low, high = float(wish["min"]), float(wish.get("max", wish["min"]))
    middle = (low + high) / 2
    if high <= 0:
        return None
    if low == high:
        return lambda: int(low * 1e9)
    draw: Callable[[], float]
    kind = wish.get("distribution", "uniform")
    if kind == "normal":
        draw = _within(low, high, lambda: random.gauss(middle, (high - low) / 6))
    elif kind == "exponential":
        draw = _within(low, high, lambda: random.expovariate(1 / middle))
    else:
        draw = lambda: random.uniform(low, high)  # noqa: E731, S311 - load, not secrets
    return lambda: int(draw() * 1e9)


def _within(low: float, high: float, draw: Callable[[], float]) -> Callable[[], float]:
    def drawn() -> float:
        for _ in range(DRAWS):
            value = draw()
            if low <= value <= high:
                return value
        return min(max(value, low), high)

    return drawn
