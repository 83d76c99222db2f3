"""Measures arms in turn, round after round, so that what changes meanwhile meets all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

Values = dict[str, tuple[float, ...]]


def interleave(
    arms: Mapping[str, Callable[[], Mapping[str, float]]],
    rounds: int,
    say: Callable[[str], None] = lambda _: None,
) -> Values:
    """Each arm once a round, in their order; answers the values by the names the arms give."""
    values: dict[str, list[float]] = {}
    for number in range(1, rounds + 1):
        for name, arm in arms.items():
            found = arm()
            for key, value in found.items():
                values.setdefault(key, []).append(value)
            shown = ", ".join(f"{key} {value:,.4g}" for key, value in found.items())
            say(f"round {number}/{rounds}, {name}: {shown}")
    return {key: tuple(found) for key, found in values.items()}


def best(candidates: Sequence[T], measure: Callable[[T], float]) -> T:
    """The candidate with the highest value, each measured once."""
    return max(candidates, key=measure)
