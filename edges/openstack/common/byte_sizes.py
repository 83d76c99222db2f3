"""Sizes of objects in tasks: a number of bytes, a text such as 64 KiB, or a distribution."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kKMGT]i?B|B|)")

#: Largest size, bytes: the largest object of S3.
MOST = 5 << 40
#: Distributions between `min` and `max`, as of think times, and lognormal.
DISTRIBUTIONS = ("uniform", "normal", "exponential", "lognormal")
#: How often a size outside the bounds is drawn again, before it is moved to the nearest bound.
DRAWS = 20

WANTED = (
    "bytes, a text such as 64 KiB or 1 GB, {min: SIZE, max: SIZE, distribution: uniform}, or a list"
    " of {size: SIZE, weight: NUMBER}"
)
#: JSON schema of a size.
SIZE_SCHEMA: Mapping[str, Any] = {
    "type": ["integer", "string", "object", "array"],
    "minimum": 0,
    "description": WANTED,
}


def byte_size(text: Any) -> int:
    """Return the bytes of a number or a text such as "64 KiB"; raises ValueError for another value.

    kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        size = text
    else:
        found = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
        unit = found[2].replace("KB", "kB") if found else ""
        if found is None or unit not in _UNITS:
            raise ValueError(f"must be {WANTED}; got {text!r}")
        exact = Fraction(found[1]) * _UNITS[unit]
        if exact.denominator != 1:
            raise ValueError(f"{text!r} has a fraction of a byte; write an integer of bytes")
        size = int(exact)
    if not 0 <= size <= MOST:
        raise ValueError(f"must be from 0 to {MOST >> 40} TiB, got {text!r}")
    return size


class SizeDistribution:
    """Draws sizes in bytes. Raises ValueError for a wish that is not valid."""

    def __init__(self, wish: Any) -> None:
        """`wish`: a size, `{min, max, distribution}`, or a list of sizes with weights."""
        self.draw: Callable[[random.Random], int]
        if isinstance(wish, Mapping):
            self.least, self.most = _bounds(wish)
            self.draw = _draw_of(self.least, self.most, wish.get("distribution", "uniform"))
        elif isinstance(wish, list):
            sizes, weights = _weighted_sizes(wish)
            self.least, self.most = min(sizes), max(sizes)
            self.draw = lambda chance: chance.choices(sizes, weights)[0]
        else:
            size = self.least = self.most = byte_size(wish)
            self.draw = lambda _: size


def size_problems(args: Mapping[str, Any], *names: str, least: int = 0) -> Iterator[str]:
    """Yield a message for each of the named arguments that is not a size from `least` bytes on."""
    for name in names:
        if name not in args:
            continue
        try:
            found = SizeDistribution(args[name])
        except ValueError as error:
            yield f"{name}: {error}"
        else:
            if found.least < least:
                yield f"{name} must be at least {least:,} bytes, got {args[name]!r}"


def _bounds(wish: Mapping[str, Any]) -> tuple[int, int]:
    unknown = [str(key) for key in wish if key not in ("min", "max", "distribution")]
    if unknown or "min" not in wish or "max" not in wish:
        named = f"{', '.join(unknown)} is unknown" if unknown else "min and max are needed"
        raise ValueError(f"{named}: write {{min: SIZE, max: SIZE, distribution: NAME}}")
    least, most = byte_size(wish["min"]), byte_size(wish["max"])
    if least > most:
        raise ValueError(f"min {wish['min']!r} is above max {wish['max']!r}")
    kind = wish.get("distribution", "uniform")
    if kind not in DISTRIBUTIONS:
        raise ValueError(f"distribution must be {', '.join(DISTRIBUTIONS)}, got {kind!r}")
    if kind == "lognormal" and not least:
        raise ValueError("lognormal needs a min above 0: its middle is sqrt(min x max)")
    return least, most


def _weighted_sizes(wish: list[Any]) -> tuple[list[int], list[float]]:
    sizes: list[int] = []
    weights: list[float] = []
    for one in wish:
        if not isinstance(one, Mapping) or not {"size"} <= one.keys() <= {"size", "weight"}:
            raise ValueError(f"a list has items {{size: SIZE, weight: NUMBER}}, got {one!r}")
        weight = one.get("weight", 1)
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight < 1e15:
            raise ValueError(f"weight must be a number from 0 on, got {weight!r}")
        sizes.append(byte_size(one["size"]))
        weights.append(float(weight))
    if not any(weights):
        raise ValueError("a list needs at least one size with a weight above 0")
    return sizes, weights


def _draw_of(least: int, most: int, kind: str) -> Callable[[random.Random], int]:
    """Return a function that draws an integer from `least` to `most`.

    normal: the middle as mean, a sixth of the way as deviation. lognormal: the same of logarithms.
    exponential: the middle as mean.
    """
    if kind == "uniform" or least == most:
        return lambda chance: chance.randint(least, most)
    middle = (least + most) / 2
    if kind == "normal":
        return _bounded_draws(least, most, lambda chance: chance.gauss(middle, (most - least) / 6))
    if kind == "exponential":
        return _bounded_draws(least, most, lambda chance: chance.expovariate(1 / middle))
    mean, deviation = math.log(least * most) / 2, math.log(most / least) / 6
    return _bounded_draws(least, most, lambda chance: chance.lognormvariate(mean, deviation))


def _bounded_draws(
    least: int, most: int, draw: Callable[[random.Random], float]
) -> Callable[[random.Random], int]:
    def drawn(chance: random.Random) -> int:
        for _ in range(DRAWS):
            value = draw(chance)
            if least <= value <= most:
                return round(value)
        return round(min(max(value, least), most))

    return drawn
