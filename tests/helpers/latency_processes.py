"""Processes of latency whose percentiles are known: what intervals of a run are measured with."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from helpers.queue_runs import lindley
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

Floats = NDArray[np.float64]
Random = np.random.Generator
#: Instants and latencies of a run, seconds.
Run = tuple[Floats, Floats]

PERCENTS = (50.0, 95.0, 99.0)
#: Seconds of a queue before its run begins.
_WARM_S = 60.0
#: Values that latencies are drawn from, where they do not depend on one another.
_GRID = 50_000
#: Seconds of the runs that percentiles without a formula are from.
_SECONDS = 80_000.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process, and what can be asked of the intervals of its runs."""

    name: str
    draw: Callable[[Random], Run]
    duration_s: float
    #: The percentiles in seconds; None: from many runs.
    truth: Mapping[float, float] | None = None
    #: Whether a run shows what the process does; only such runs are judged.
    shows: Callable[[Floats], bool] | None = None
    #: Why intervals are not judged, or not for being too wide.
    unjudged: str = ""
    may_be_wide: str = ""

    def percentiles(self, random: Random) -> Mapping[float, float]:
        """The true percentiles in seconds."""
        if self.truth is not None:
            return self.truth
        count = math.ceil(_SECONDS / self.duration_s)
        values = np.concatenate([self.draw(random)[1] for _ in range(count)])
        return dict(zip(PERCENTS, np.percentile(values, PERCENTS).tolist(), strict=True))


def matrix_of(run: Run) -> LatencyMatrix:
    """A run as it is kept."""
    instants, values = run
    found = LatencyMatrix()
    found.add((instants * 1e9).astype(np.int64), (values * 1e9).astype(np.int64))
    return found


def arrivals(random: Random, rate: float, duration_s: float) -> Floats:
    """Instants of a Poisson process."""
    return np.sort(random.uniform(0, duration_s, random.poisson(rate * duration_s)))


def queue(rate: float, duration_s: float, load: float, *, constant: bool = False) -> Process:
    """M/M/1, or M/D/1 with `constant` service times."""

    def draw(random: Random) -> Run:
        at = arrivals(random, rate, duration_s + _WARM_S)
        services = (
            np.full(len(at), load / rate) if constant else random.exponential(load / rate, len(at))
        )
        kept = at >= _WARM_S
        return at[kept] - _WARM_S, lindley(at, services)[kept]

    spare = rate / load - rate
    return Process(
        name=f"{'M/D/1' if constant else 'M/M/1'} {rate:g}/s, {duration_s:g} s, load {load:g}",
        draw=draw,
        duration_s=duration_s,
        truth=None
        if constant
        else {percent: -math.log(1 - percent / 100) / spare for percent in PERCENTS},
    )


def independent(name: str, duration_s: float, quantile: Callable[[float], float]) -> Process:
    """Latencies that do not depend on one another, by the inverse of their distribution."""

    @functools.cache
    def values() -> Floats:
        return np.array([quantile((place + 0.5) / _GRID) for place in range(_GRID)])

    def draw(random: Random) -> Run:
        at = arrivals(random, 100, duration_s)
        return at, random.choice(values(), len(at))

    return Process(
        name=f"{name}, {duration_s:g} s",
        draw=draw,
        duration_s=duration_s,
        truth={percent: quantile(percent / 100) for percent in PERCENTS},
    )


def exponential(share: float) -> float:
    """Exponential latencies, 10 ms on average."""
    return -0.01 * math.log(1 - share)


def pareto(share: float) -> float:
    """Latencies without a variance, from 5 ms."""
    return 0.005 * (1 - share) ** (-1 / 1.5)


def two_modes(slow: float) -> Callable[[float], float]:
    """Latencies of about 10 ms, or of 100 ms for a share of them."""

    def quantile(share: float) -> float:
        fast = 1 - slow
        if abs(share - fast) < 1e-9:
            return 0.03
        within = NormalDist(1, 0.02).inv_cdf
        return 0.01 * within(share / fast) if share < fast else 0.1 * within((share - fast) / slow)

    return quantile


def two_states(dwell_s: float, duration_s: float = 120.0) -> Process:
    """A service that is twice as slow for random stretches."""

    def draw(random: Random) -> Run:
        changes = np.cumsum(random.exponential(dwell_s, int(3 * duration_s / dwell_s) + 200))
        at = arrivals(random, 100, duration_s)
        state = (np.searchsorted(changes, at) + random.integers(2)) % 2
        return at, np.where(state == 0, 0.01, 0.02) * random.exponential(1, len(at))

    return Process(
        name=f"two states, {dwell_s:g} s each, {duration_s:g} s", draw=draw, duration_s=duration_s
    )


def regular_pauses(duration_s: float = 120.0) -> Process:
    """A service that pauses for a second every thirty, with a random phase."""

    def draw(random: Random) -> Run:
        at = arrivals(random, 100, duration_s)
        into = (at + random.uniform(0, 30)) % 30
        return at, np.where(into < 1, 1 - into, 0) + random.exponential(0.01, len(at))

    return Process(
        name=f"pause of 1 s every 30 s, {duration_s:g} s",
        draw=draw,
        duration_s=duration_s,
        may_be_wide="pauses are as regular as chance is not",
    )


def random_pauses(duration_s: float, shows: Callable[[Floats], bool] | None = None) -> Process:
    """A service that pauses for two seconds at random, once a minute on average."""

    def draw(random: Random) -> Run:
        at = arrivals(random, 100, duration_s)
        values = random.exponential(0.01, len(at))
        for begin in random.uniform(0, duration_s, random.poisson(duration_s / 60)):
            values += np.where((at >= begin) & (at < begin + 2), begin + 2 - at, 0)
        return at, values

    missing = "" if shows is None else ", of runs with one"
    return Process(
        name=f"random pauses of 2 s, one a minute{missing}, {duration_s:g} s",
        draw=draw,
        duration_s=duration_s,
        shows=shows,
    )


def walk(duration_s: float = 120.0) -> Process:
    """A level that takes a random step of 2 % each second."""

    def draw(random: Random) -> Run:
        at = arrivals(random, 100, duration_s)
        level = np.cumsum(random.normal(0, 0.02, int(duration_s) + 1))
        return at, 0.01 * np.exp(level[at.astype(int)]) * random.exponential(1, len(at))

    return Process(
        name=f"random walk, 2 %/s, {duration_s:g} s",
        draw=draw,
        duration_s=duration_s,
        unjudged="no level to return to",
    )


#: All that `make statistics` shows.
PROCESSES = (
    queue(100, 60, 0.5),
    queue(100, 60, 0.8),
    queue(100, 300, 0.8),
    queue(200, 30, 0.5),
    queue(100, 60, 0.8, constant=True),
    queue(100, 300, 0.8, constant=True),
    independent("exponential", 5, exponential),
    independent("exponential", 49, exponential),
    independent("Pareto 1.5", 120, pareto),
    independent("two modes 95/5", 120, two_modes(0.05)),
    independent("two modes 50/50", 120, two_modes(0.5)),
    two_states(5),
    two_states(20),
    regular_pauses(),
    random_pauses(120, shows=lambda values: bool(values.max() > 0.5)),
    random_pauses(360),
    walk(),
)
