"""Drills of services that chance has made: what happens is known, and so is when it ends."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helpers.result_rows import row_of
from osbench.common.protocol.columns import Columns, decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics

NS = 1_000_000_000
#: From one beat of an event loop to the next, seconds.
BEAT_S = 0.005

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Random = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Drill:
    """A load of a service: arrivals with response times in seconds, and which of them fail."""

    due: Floats
    took: Floats
    bad: Bools
    fault_s: float
    #: When the fault has no more effect, seconds after it began; 0 if it has none.
    lasts_s: float
    told: str

    def statistics(self, pauses: tuple[tuple[float, float], ...] = ()) -> DrillStatistics:
        """The statistics, as a coordinator makes them of blocks of a second.

        `pauses`: begin and end (s) of times in which the load generator did nothing.
        """
        made = DrillStatistics({"fault": "stop"})
        resumed = _resumed(pauses)
        started = resumed(self.due)
        ended = resumed(started + self.took)
        beats = np.arange(0, float(ended.max()) + 1, BEAT_S)
        awake = resumed(beats)
        begun = False
        for second in np.arange(0, float(ended.max()) + 1):
            for begin, end in ((second, self.fault_s), (max(second, self.fault_s), second + 1)):
                if begin >= self.fault_s and not begun:
                    if self.fault_s > second + 1:
                        continue
                    made.begin("fault", self.fault_s)
                    made.end_hook("fault", "")
                    begun = True
                here = (ended >= begin) & (ended < min(end, second + 1))
                if not here.any():
                    continue
                columns = rows(self.due[here], started[here], ended[here], self.bad[here])
                made.add(columns)
                late = (awake >= begin) & (awake < min(end, second + 1))
                lags = ((awake - beats)[late] * NS).astype(np.int64)
                made.add_lateness("w", columns, lags)
        return made


def rows(due: Floats, started: Floats, ended: Floats, bad: Bools) -> Columns:
    """Result rows of iterations, times in seconds."""
    found = [
        row_of(
            number + 1,
            int(Outcome.FAILED if bad[number] else Outcome.OK),
            *(round(times[number] * NS) for times in (due, started, ended)),
            *(0, 0, (), None),
        )
        for number in range(len(due))
    ]
    return decode_rows(encode_rows(found, (), 0))


def planted(random: Random, kind: str) -> Drill:
    """A drill by chance: `kind` is errors, slowness, both, steps or nothing."""
    rate, fault_s = 10 ** random.uniform(1.3, 2.3), random.uniform(8, 30)
    lasts_s, after_s = random.uniform(1.5, 15), random.uniform(8, 40)
    due = _arrivals(random, rate, fault_s + lasts_s + after_s)
    took, told = _times(random, due)
    since = due - fault_s
    struck = (since >= 0) & (since < lasts_s)
    bad = random.random(len(due)) < random.choice([0.0, 0.0, 0.002, 0.02])
    share, factor = random.uniform(0.3, 1), random.uniform(2.5, 8)
    hit = struck & (random.random(len(due)) < share)
    if kind in ("errors", "both"):
        bad |= hit
        told += f", {share:.0%} fail"
    if kind in ("slowness", "both"):
        took = np.where(struck, factor * took, took)
        told += f", {factor:.1f} times slower"
    if kind == "steps":
        first, second = np.sort(random.uniform(0.2, 0.8, 2)) * lasts_s
        less = np.where(since < first, 1.0, np.where(since < second, 0.75, 0.5))
        if random.random() < 0.5:
            bad |= struck & (random.random(len(due)) < less)
            told += ", fewer and fewer fail"
        else:
            took = np.where(struck, (1 + less * max(2.0, factor)) * took, took)
            told += f", {1 + max(2.0, factor):.1f} times slower, and less in steps"
    return Drill(
        due=due,
        took=took,
        bad=bad,
        fault_s=fault_s,
        lasts_s=0.0 if kind == "nothing" else lasts_s,
        told=f"{kind}: {rate:.0f}/s, fault at {fault_s:.1f} s for {lasts_s:.2f} s, {told}",
    )


def stopped_queue(random: Random) -> Drill:
    """A service that stops by chance and has an unbounded queue, whose backlog ends by degrees.

    The fault lasts until an arrival does not wait.
    """
    rate, fault_s, stop_s = (
        10 ** random.uniform(1.3, 2.3),
        random.uniform(8, 30),
        random.uniform(1, 4),
    )
    busy, servers = random.uniform(0.3, 0.8), int(random.integers(1, 9))
    drains_s = stop_s * busy / (1 - busy)
    due = _arrivals(random, rate, fault_s + stop_s + drains_s + random.uniform(10, 25))
    free, waits, took = [0.0] * servers, np.zeros(len(due)), np.zeros(len(due))
    lengths = servers * busy / rate * random.uniform(0.9, 1.1, len(due))
    resumes_s = fault_s + stop_s
    for at, (arrived, length_s) in enumerate(zip(due.tolist(), lengths.tolist(), strict=True)):
        begun = max(arrived, free[0])
        if fault_s <= begun < resumes_s:
            begun = resumes_s
        ended = begun + length_s + (stop_s if begun < fault_s < begun + length_s else 0.0)
        heapq.heapreplace(free, ended)
        waits[at], took[at] = begun - arrived, ended - arrived
    calm = due[(due >= fault_s + stop_s) & (waits <= 0)]
    return Drill(
        due=due,
        took=took,
        bad=np.zeros(len(due), np.bool_),
        fault_s=fault_s,
        lasts_s=float(calm[0]) - fault_s,
        told=f"queue: {rate:.0f}/s, {servers} servers, {busy:.0%} busy, stopped for {stop_s:.1f} s",
    )


def _arrivals(random: Random, rate: float, until_s: float) -> Floats:
    if random.random() < 0.5:
        return np.arange(0, until_s, 1 / rate)
    apart = random.exponential(1 / rate, round(2 * rate * until_s) + 100)
    instants = np.cumsum(apart)
    return instants[instants < until_s]


def _times(random: Random, due: Floats) -> tuple[Floats, str]:
    """Response times of a service without a fault, by arrival; and what it is like."""
    base = 10 ** random.uniform(-2.5, -0.7)
    spread = random.uniform(0.05, 0.6)
    like = str(random.choice(["steady", "noisy", "dependent", "pausing"]))
    if like == "steady":
        took = base * random.uniform(1, 1.05, len(due))
    else:
        took = base * np.exp(random.normal(0, spread, len(due)))
    if like == "dependent":
        noise, level = random.normal(0, spread / 2, len(due)), 0.0
        for at in range(len(due)):
            level = 0.8 * level + noise[at]
            took[at] = base * np.exp(level)
    if like == "pausing":
        begins = np.cumsum(random.exponential(random.uniform(1, 4), 200))
        pauses = tuple((at, at + random.exponential(0.08)) for at in begins)
        took = _resumed(pauses)(due + took) - due
    return took, f"{like} around {1000 * base:.1f} ms (sigma {spread:.2f})"


def _resumed(pauses: tuple[tuple[float, float], ...]) -> Callable[[Floats], Floats]:
    """A function of instants: each that lies within a pause becomes its end."""

    def resumed(instants: Floats) -> Floats:
        found = instants
        for begin, end in pauses:
            found = np.where((found >= begin) & (found < end), end, found)
        return found

    return resumed
