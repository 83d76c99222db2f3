"""Arrival rates over time: linear segments with exact formulas for the integral and its inverse.

The integral of the rate is the number of arrivals so far.
"""

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
    """Return a number as written in decimal, not its nearest binary: 0.1 gives exactly 1/10."""
    return Fraction(str(number))


@dataclass(frozen=True, kw_only=True)
class RateSegment:
    """A segment of a rate over time, in which the rate changes linearly or is constant.

    Exact fractions: seconds after t0, arrivals per second.
    """

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
        """Return the end of the segment, seconds after t0; None if it does not end."""
        return None if self.length_s is None else self.begin_s + self.length_s

    @cached_property
    def after(self) -> Fraction | None:
        """Return the integral of the rate from t0 to the segment's end; None if it does not end."""
        if self.length_s is None:
            return None
        return self.before + (self.rate + self.end_rate) / 2 * self.length_s

    def reach(self, instant_s: float) -> int:
        """Return an upper bound of the arrivals from the segment's begin to `instant_s`, after t0.

        0 if the segment begins later; arrivals after its end do not count. If the rate is constant,
        at most about 2 too many.
        """
        begun_s = instant_s - float(self.begin_s)
        if begun_s < 0:
            return 0
        length_s = begun_s if self.length_s is None else min(begun_s, float(self.length_s))
        return int(length_s * float(max(self.rate, self.end_rate))) + 2

    def instants(self, first: Fraction, ranks: Floats) -> Floats:
        """Return the times, seconds after t0, at which the segment's integral is `first` + a rank.

        An array with a time for each of `ranks`, which ascend. The integral counts arrivals from
        the segment's beginning. Not for a segment whose rate is 0 throughout.
        """
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
    """Return the seconds after which the integral of a rate reaches each value of `integral`.

    The rate begins at `rate` and grows by `slope` per second.
    """
    # rounding may place a first arrival slightly before the beginning
    integral = np.maximum(integral, 0.0)
    divisor = rate + np.sqrt(rate * rate + 2 * slope * integral)
    return np.divide(2 * integral, divisor, out=np.zeros_like(integral), where=divisor > 0)


def points(curve: Curve) -> list[tuple[float, float]]:
    """Return the corners of a rate over time: (seconds after t0, arrivals per second).

    Straight lines between them are the rate. The beginning of a last segment without end is the
    last corner.
    """
    found = []
    for position in range(curve.last + 1):
        segment = curve.segment(position)
        found.append((float(segment.begin_s), float(segment.rate)))
        if segment.end_s is not None:
            found.append((float(segment.end_s), float(segment.end_rate)))
    return list(dict.fromkeys(found))


class Curve(Protocol):
    """An arrival rate over time, as segments without a gap from t0 on.

    Segments have positions from 0. Implemented by `Ramp` and `Stages`.
    """

    @property
    def last(self) -> int:
        """Return the position of the last segment; the first is 0."""

    @property
    def total(self) -> Fraction | None:
        """Return the integral of the rate over all time: arrivals in all; None if infinite."""

    def position(self, level: Fraction | int) -> int:
        """Return the position of the segment in which the arrivals so far pass `level`."""

    def segment(self, position: int) -> RateSegment:
        """Return the segment at a position, 0 to `last`."""


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """A rate that starts with `start` and rises by `step` every `duration` seconds up to `end`.

    Then it stays at `end`. If `length_s` is given, the rate ends there, maybe before it reaches
    `end`. A position is the number of a step, from 0.
    """

    #: Arrivals per second.
    start: Fraction
    end: Fraction
    step: Fraction = Fraction(1)
    #: Seconds between two rates.
    duration: Fraction = Fraction(1)
    #: When the rate ends, seconds after t0; None: never.
    length_s: Fraction | None = None

    @cached_property
    def last(self) -> int:
        """Return the position of the last segment: at rate `end`, or cut at `length_s`."""
        climbed = ceil((self.end - self.start) / self.step)
        if self.length_s is None:
            return climbed
        return min(climbed, ceil(self.length_s / self.duration) - 1)

    @cached_property
    def total(self) -> Fraction | None:
        """Return the integral of the rate up to `length_s`: arrivals, not rounded; else None."""
        return self.segment(self.last).after

    def rate(self, position: int) -> Fraction:
        """Return the arrivals per second in the segment at a position."""
        return min(self.start + position * self.step, self.end)

    def before(self, position: int) -> Fraction:
        """Return the integral of the rate from t0 to the begin of a segment: arrivals so far."""
        climb = self.step * (position * (position - 1)) / 2
        return (self.start * position + climb) * self.duration

    def position(self, level: Fraction | int) -> int:
        """Return the position of the segment in which the integral of the rate passes `level`.

        `level` is a number of arrivals, at least 0.
        """
        return bisect_right(range(self.last + 1), level, key=self.before) - 1

    def segment(self, position: int) -> RateSegment:
        """Return the segment at a position, 0 to `last`."""
        return RateSegment(
            begin_s=position * self.duration,
            length_s=self.duration if position < self.last else self._rest_s(),
            before=self.before(position),
            rate=self.rate(position),
            end_rate=self.rate(position),
        )

    def _rest_s(self) -> Fraction | None:
        return None if self.length_s is None else self.length_s - self.last * self.duration


class Stages:
    """An arrival rate that changes linearly from each target to the next, then ends."""

    def __init__(self, start: Fraction, stages: Sequence[tuple[Fraction, Fraction]]) -> None:
        """Begin at rate `start`; each stage is (duration in seconds, target rate at its end)."""
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
        """Return the curve of the configuration of the runner `stages`."""
        return cls(
            exact(config.get("start", 0)),
            [(exact(stage["duration"]), exact(stage["target"])) for stage in config["stages"]],
        )

    @property
    def total(self) -> Fraction:
        """Return the integral of the rate over all stages: the number of arrivals, not rounded."""
        return self._levels[-1]

    @property
    def lasts_s(self) -> float:
        """Return the sum of the durations of all stages, seconds."""
        return float(self._instants[-1])

    def position(self, level: Fraction | int) -> int:
        """Return the position of the stage in which the arrivals so far exceed `level`.

        Stages at rate 0 are skipped; `last` + 1 if `level` is not less than `total`.
        """
        return bisect_right(self._levels, level) - 1

    def segment(self, position: int) -> RateSegment:
        """Return the stage at a position, 0 to `last`, as a segment."""
        return RateSegment(
            begin_s=self._instants[position],
            length_s=self._lengths[position],
            before=self._levels[position],
            rate=self._rates[position],
            end_rate=self._rates[position + 1],
        )
