"""Arrival rates over time, as segments with closed formulas for the integral and its inverse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def exact(number: float) -> Fraction:
    """The decimal number as written in a task file, not the nearest binary one: 0.1 is 1/10."""
    return Fraction(str(number))


@dataclass(frozen=True, kw_only=True)
class RateSegment:
    """A period in which the rate changes linearly, or is constant."""

    #: Seconds after t0.
    begin_s: Fraction
    #: None if it does not end; then the rate is constant.
    length_s: Fraction | None
    #: Integral of the rate up to the beginning.
    before: Fraction
    #: Arrivals per second at the beginning and at the end.
    rate: Fraction
    end_rate: Fraction

    @property
    def end_s(self) -> Fraction | None:
        """Seconds after t0; None if it does not end."""
        return None if self.length_s is None else self.begin_s + self.length_s

    @cached_property
    def after(self) -> Fraction | None:
        """Integral of the rate up to the end; None if it does not end."""
        if self.length_s is None:
            return None
        return self.before + (self.rate + self.end_rate) / 2 * self.length_s

    def reach(self, instant_s: float) -> int:
        """Return an upper bound of the rate's integral from the segment's begin to `instant_s`."""
        begun_s = instant_s - float(self.begin_s)
        if begun_s < 0:
            return 0
        length_s = begun_s if self.length_s is None else min(begun_s, float(self.length_s))
        return int(length_s * float(max(self.rate, self.end_rate))) + 2

    def instants(self, first: Fraction, ranks: Floats) -> Floats:
        """Return the times, seconds after t0, at which the rate's integral is `first` + a rank."""
        if self.rate == self.end_rate:
            # relative to the beginning of the segment: no drift, and independent of the calls
            rate = self.rate
            return float(self.begin_s + first / rate) + ranks * float(rate.denominator) / float(
                rate.numerator
            )
        assert self.length_s is not None and self.after is not None
        slope = float((self.end_rate - self.rate) / self.length_s)
        if slope > 0:
            return float(self.begin_s) + _time_to(float(self.rate), slope, float(first) + ranks)
        # computed from the end, because the square root of a difference would lose digits
        rest = float(self.after - self.before - first) - ranks
        end_s = float(self.begin_s + self.length_s)
        instants = end_s - _time_to(float(self.end_rate), -slope, rest)
        return np.maximum(instants, float(self.begin_s))


def _time_to(rate: float, slope: float, integral: Floats) -> Floats:
    """Seconds until a rate that grows from `rate` by `slope` per second reaches an integral."""
    # rounding may place a first arrival slightly before the beginning
    integral = np.maximum(integral, 0.0)
    divisor = rate + np.sqrt(rate * rate + 2 * slope * integral)
    return np.divide(2 * integral, divisor, out=np.zeros_like(integral), where=divisor > 0)


def points(curve: Curve) -> list[tuple[float, float]]:
    """The rate over time: seconds after t0 with arrivals per second, to be joined by lines."""
    found = []
    for position in range(curve.last + 1):
        segment = curve.segment(position)
        found.append((float(segment.begin_s), float(segment.rate)))
        if segment.end_s is not None:
            found.append((float(segment.end_s), float(segment.end_rate)))
    return list(dict.fromkeys(found))


class Curve(Protocol):
    """A rate over time, as segments without a gap from t0 on."""

    @property
    def last(self) -> int:
        """Position of the last segment, from 0."""

    @property
    def total(self) -> Fraction | None:
        """Integral of the rate over all time; None is infinite."""

    def position(self, level: Fraction | int) -> int:
        """Position of the segment in which the integral of the rate passes `level`."""

    def segment(self, position: int) -> RateSegment:
        """The segment at a position of 0 to `last`."""


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """A rate that starts with `start` and rises by `step` every `duration` seconds up to `end`."""

    #: Arrivals per second.
    start: Fraction
    end: Fraction
    step: Fraction = Fraction(1)
    #: Seconds between two rates.
    duration: Fraction = Fraction(1)

    @cached_property
    def last(self) -> int:
        """Position of the segment that runs at rate `end`."""
        return ceil((self.end - self.start) / self.step)

    @property
    def total(self) -> None:
        """None, because it does not end."""
        return

    def rate(self, position: int) -> Fraction:
        """Arrivals per second in a segment."""
        return min(self.start + position * self.step, self.end)

    def before(self, position: int) -> Fraction:
        """Integral of the rate up to the beginning of a segment, at most `last`."""
        climb = self.step * (position * (position - 1)) / 2
        return (self.start * position + climb) * self.duration

    def integral(self, elapsed_s: Fraction) -> Fraction:
        """Return the integral of the rate over the first `elapsed_s` seconds: arrivals, exact."""
        position = min(elapsed_s // self.duration, self.last)
        begun_s = elapsed_s - position * self.duration
        return self.before(position) + self.rate(position) * begun_s

    def position(self, level: Fraction | int) -> int:
        """Position of the segment in which the integral of the rate passes `level`."""
        return bisect_right(range(self.last + 1), level, key=self.before) - 1

    def segment(self, position: int) -> RateSegment:
        """The segment at a position of 0 to `last`."""
        return RateSegment(
            begin_s=position * self.duration,
            length_s=self.duration if position < self.last else None,
            before=self.before(position),
            rate=self.rate(position),
            end_rate=self.rate(position),
        )


class Stages:
    """A rate that changes linearly from each target to the next."""

    def __init__(self, start: Fraction, stages: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Begin at rate `start`; each stage has a duration in seconds and a target."""
        rates = [start, *(target for _, target in stages)]
        lengths = [length_s for length_s, _ in stages]
        areas = [
            (one + other) / 2 * length_s
            for one, other, length_s in zip(rates, rates[1:], lengths, strict=False)
        ]
        self._rates = rates
        self._lengths = lengths
        #: Integrals of the rate and seconds after t0 at the beginning of each stage, and the end.
        self._levels = list(accumulate(areas, initial=Fraction(0)))
        self._instants = list(accumulate(lengths, initial=Fraction(0)))
        self.last = len(stages) - 1

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Stages:
        """The stages of a runner's configuration."""
        return cls(
            exact(config.get("start", 0)),
            [(exact(stage["duration"]), exact(stage["target"])) for stage in config["stages"]],
        )

    @property
    def total(self) -> Fraction:
        """Integral of the rate over all stages."""
        return self._levels[-1]

    @property
    def lasts_s(self) -> float:
        """Seconds from the beginning to the end."""
        return float(self._instants[-1])

    def position(self, level: Fraction | int) -> int:
        """Position of the stage in which the integral exceeds `level`; skips stages at rate 0."""
        return bisect_right(self._levels, level) - 1

    def segment(self, position: int) -> RateSegment:
        """The stage at a position of 0 to `last`."""
        return RateSegment(
            begin_s=self._instants[position],
            length_s=self._lengths[position],
            before=self._levels[position],
            rate=self._rates[position],
            end_rate=self._rates[position + 1],
        )
