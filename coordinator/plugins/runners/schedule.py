"""Arrival schedules: the due time of each arrival as a function of its number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, Protocol

import numpy as np

from osbench.coordinator.plugins.runners.rates import Curve, Floats

#: Most arrivals that one call of `due` returns, so that memory is bounded after a long pause.
MOST = 1_000_000

#: Gaps that are drawn from one state of the random number generator.
BLOCK = 4_096


class Schedule(Protocol):
    """Due times of the arrivals of a workload by their numbers, which count from 0."""

    @property
    def count(self) -> int | None:
        """Return the number of arrivals in all; None is unlimited."""

    def due(self, start: int, stop: int | None, horizon_s: float) -> Floats:
        """Return the due times of arrivals `start` to `stop` - 1, seconds after t0, ascending.

        `stop` None: without end. Returns only times up to `horizon_s` (seconds after t0), and at
        most `MOST`.
        """


def schedule(curve: Curve, config: Mapping[str, Any]) -> Schedule:
    """Return the schedule of a rate over time, by the configuration of a runner.

    Random with `seed` (0 unless given) if `arrivals` is "poisson", else even.
    """
    if config.get("arrivals", "even") == "poisson":
        return Poisson(curve, int(config.get("seed", 0)))
    return Even(curve)


class Even:
    """Even arrivals: number k is due when the integral of the rate reaches k.

    The first is number 0: it is due at t0, unless the rate stays at 0 first. The fraction of an
    arrival at the end of a segment carries over to the next one.
    """

    def __init__(self, curve: Curve) -> None:
        self._curve = curve

    @cached_property
    def count(self) -> int | None:
        """Return the number of arrivals in all; None is without end."""
        return None if self._curve.total is None else ceil(self._curve.total)

    def due(self, start: int, stop: int | None, horizon_s: float) -> Floats:
        """Return due times of arrivals `start` to `stop` - 1, seconds after t0; see `Schedule`."""
        stop = start + MOST if stop is None else min(stop, start + MOST)
        parts = [np.empty(0)]
        for position in range(self._curve.position(start), self._curve.last + 1):
            segment = self._curve.segment(position)
            first = ceil(segment.before)
            end = min(stop, first + segment.reach(horizon_s))
            if segment.after is not None:
                end = min(end, ceil(segment.after))
            if start < end:
                ranks = np.arange(start - first, end - first, dtype=np.float64)
                instants = segment.instants(first - segment.before, ranks)
                parts.append(_until(instants, horizon_s))
                start += len(parts[-1])
            if start >= stop or segment.end_s is None or segment.end_s > horizon_s:
                break
        return np.concatenate(parts)


class Poisson:
    """A Poisson process: gaps of unit rate, mapped through the inverse of the rate's integral.

    The gaps come from a counter-based generator (Philox, Salmon et al., SC 2011), indexed by the
    number of their block, so that due times only depend on seed and curve.
    """

    def __init__(self, curve: Curve, seed: int) -> None:
        self._curve = curve
        self._seed = seed
        #: Sum of all gaps before each block that was reached.
        self._before = [0.0]
        self._kept: tuple[int, Floats] = (-1, np.empty(0))

    @cached_property
    def count(self) -> int | None:
        """Return the number of arrivals in all, which the seed determines; None is without end.

        Draws all gaps up to the end.
        """
        if self._curve.total is None:
            return None
        total = float(self._curve.total)
        block = 0
        while self._levels(block)[-1] < total:
            block += 1
        return block * BLOCK + int(np.searchsorted(self._levels(block), total))

    def due(self, start: int, stop: int | None, horizon_s: float) -> Floats:
        """Return due times of arrivals `start` to `stop` - 1, seconds after t0; see `Schedule`.

        The same seed gives the same times, however they are requested.
        """
        stop = start + MOST if stop is None else min(stop, start + MOST)
        parts = [np.empty(0)]
        while start < stop:
            block, rank = divmod(start, BLOCK)
            levels = self._levels(block)[rank : rank + stop - start]
            instants = np.concatenate([np.empty(0), *self._instants(levels, horizon_s)])
            parts.append(_until(instants, horizon_s))
            start += len(parts[-1])
            if len(parts[-1]) < len(levels):
                break
        return np.concatenate(parts)

    def _instants(self, levels: Floats, horizon_s: float) -> Iterator[Floats]:
        """Yield times, seconds after t0, at which the rate's integral reaches each of `levels`.

        `levels` ascend. Ends after the segment that contains `horizon_s`; times in it may be later.
        """
        start = self._curve.position(Fraction(float(levels[0])))
        for position in range(start, self._curve.last + 1):
            segment = self._curve.segment(position)
            inside = len(levels)
            if segment.after is not None:
                inside = int(np.searchsorted(levels, float(segment.after)))
            if inside:
                yield segment.instants(Fraction(0), levels[:inside] - float(segment.before))
                levels = levels[inside:]
            if not len(levels) or segment.end_s is None or segment.end_s > horizon_s:
                return

    def _levels(self, block: int) -> Floats:
        """Return for each arrival of a block the integral of the rate at which it is due.

        That is the sum of all gaps up to it, from the first arrival on. The last block is cached;
        earlier blocks are drawn again.
        """
        for number in range(len(self._before) - 1, block):
            self._before.append(float(self._levels(number)[-1]))
        if self._kept[0] != block:
            self._kept = (block, self._before[block] + self._gaps(block).cumsum())
        return self._kept[1]

    def _gaps(self, block: int) -> Floats:
        generator = np.random.Philox(key=self._seed, counter=[0, 0, 0, block])
        # 53 bits, in the middle of their interval: never 0, whose logarithm is infinite
        uniform = ((generator.random_raw(BLOCK) >> np.uint64(11)) + 0.5) * 2.0**-53
        gaps: Floats = -np.log(uniform)
        return gaps


def _until(instants: Floats, horizon_s: float) -> Floats:
    return instants[: np.searchsorted(instants, horizon_s, side="right")]
