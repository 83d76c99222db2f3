"""Arrival schedules: the due instant of every arrival as a pure function of its number."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

#: Arrivals one call of `Ramp.due` returns at most, so that a long pause costs bounded memory.
MOST = 1_000_000


def exact(number: float) -> Fraction:
    """The decimal number that a task file shows, not its nearest binary one: 0.1 is 1/10."""
    return Fraction(str(number))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Arrivals at one steady rate."""

    #: Number of the stage's first arrival.
    first: int
    #: Number of the first arrival after the stage; None where the stage does not end.
    after: int | None
    #: Due instant of the first arrival, seconds after t0.
    first_s: float
    #: Arrivals a second.
    rate: Fraction

    def due(self, start: int, stop: int, horizon_s: float) -> NDArray[np.float64]:
        """Due instants of the arrivals `start` to `stop` - 1 that come up to `horizon_s`."""
        reach = int((horizon_s - self.first_s) * float(self.rate)) + 2
        stop = min(stop, self.first + reach)
        ranks = np.arange(start - self.first, stop - self.first, dtype=np.float64)
        # every instant from the stage's own beginning: no drift, and the same however asked
        instants = self.first_s + ranks * float(self.rate.denominator) / float(self.rate.numerator)
        return instants[: np.searchsorted(instants, horizon_s, side="right")]


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """Arrivals at rate `start` for `duration` seconds, then `step` more, up to `end`, which stays.

    Arrival k is due when the integral of the rate reaches k: arrival 0 at t0, and a stage
    goes on with the fraction of an arrival that the one before left.
    """

    #: Arrivals a second.
    start: Fraction
    end: Fraction
    step: Fraction = Fraction(1)
    #: Seconds between two rates.
    duration: Fraction = Fraction(1)

    @cached_property
    def last(self) -> int:
        """Position of the stage that runs at rate `end`."""
        return ceil((self.end - self.start) / self.step)

    def rate(self, stage: int) -> Fraction:
        """Arrivals a second in a stage, counted from 0."""
        return min(self.start + stage * self.step, self.end)

    def before(self, stage: int) -> Fraction:
        """Integral of the rate up to the beginning of `stage`, at most `last`."""
        climb = self.step * (stage * (stage - 1)) / 2
        return (self.start * stage + climb) * self.duration

    def first(self, stage: int) -> int:
        """Number of the first arrival of `stage`."""
        return ceil(self.before(stage))

    def stage(self, position: int) -> Stage:
        """The stage at a position of 0 to `last`."""
        first, rate = self.first(position), self.rate(position)
        begin_s = position * self.duration
        return Stage(
            first=first,
            after=self.first(position + 1) if position < self.last else None,
            first_s=float(begin_s + (first - self.before(position)) / rate),
            rate=rate,
        )

    def due(self, start: int, stop: int, horizon_s: float) -> NDArray[np.float64]:
        """Due instants, seconds after t0, ascending, of arrivals `start` to `stop` - 1.

        Ends with the last one not after `horizon_s`, or earlier with `MOST` of them.
        """
        parts = [np.empty(0)]
        position = bisect_right(range(self.last + 1), start, key=self.first) - 1
        stop = min(stop, start + MOST)
        while start < stop:
            stage = self.stage(position)
            end = stop if stage.after is None else min(stop, stage.after)
            part = stage.due(start, end, horizon_s)
            parts.append(part)
            start += len(part)
            position += 1
            if start < end:
                break
        return np.concatenate(parts)
