"""Overloads of services that chance has made, in virtual time: their fate follows from their parts.

A service has some servers, which take requests from one queue. A gateway in front of it may try
again if a response takes too long; the service then works on requests that nobody waits for.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.runners.schedule import schedule
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.overload_statistics import OverloadStatistics

NS = 1_000_000_000
#: From one beat of an event loop to the next, seconds.
BEAT_S = 0.01

Floats = NDArray[np.float64]
Random = np.random.Generator

#: Kinds of services, and what is right for each.
RIGHT = {
    "bounded queue": "back",
    "unbounded queue": "back",
    "clients that retry": "stuck",
    "clients that retry little": "back",
    "cache that stays empty": "stuck",
    "cache that refills": "back",
    "slow leak": "leak",
    "large capacity": "not overloaded",
}


@dataclass(frozen=True, kw_only=True)
class Service:
    """The parts of a service; times are seconds."""

    servers: int
    #: Mean time of a request, and the spread of its logarithm.
    takes_s: float
    spread: float
    #: Requests that wait at most; further ones are refused at once.
    queue: float = float("inf")
    #: The gateway waits so long for a response, and tries so often again.
    waits_s: float = float("inf")
    retries: int = 0
    #: A request that is not in the cache takes so many times as long.
    miss: float = 1.0
    #: The cache is lost if so many requests wait, and keeps nothing until fewer do; entries of it.
    loses_at: float = float("inf")
    entries: int = 0
    #: The cache is filled again while more wait than `loses_at`.
    refills: bool = True
    #: Growth of the time of a request by each that was served.
    leak: float = 0.0

    @property
    def capacity(self) -> float:
        """Requests per second, as long as the cache is full and nothing has leaked."""
        return self.servers / (self.takes_s * float(np.exp(self.spread**2 / 2)))


@dataclass(kw_only=True)
class Served:
    """Times and success of all arrivals."""

    ended: Floats
    well: NDArray[np.bool_]
    #: Seconds that each took beyond its own work with a full cache: it waited, or missed.
    beyond_s: Floats
    #: Instants at which the cache became nine tenths full.
    full: list[float] = field(default_factory=list)


class Simulation:
    """Plays one service, arrival by arrival."""

    def __init__(self, service: Service, due: Floats, random: Random) -> None:
        self._service, self._due, self._random = service, due, random
        self._events: list[tuple[float, int, str, int, int]] = []
        self._order = count()
        self._waiting: deque[tuple[int, int]] = deque()
        self._free = service.servers
        self._cached, self._lost = float(service.entries), False
        self._served = 0
        self._attempt = np.zeros(len(due), int)
        self._done = np.zeros(len(due), bool)
        self._work_s = np.zeros(len(due))
        self.found = Served(
            ended=np.zeros(len(due)), well=np.zeros(len(due), bool), beyond_s=np.zeros(len(due))
        )

    def play(self) -> Served:
        """Return how all arrivals ended."""
        for number, at in enumerate(self._due.tolist()):
            self._later(at, "try", number, 0)
        while self._events:
            at, _, what, number, attempt = heapq.heappop(self._events)
            if what == "try":
                self._try(at, number)
            elif what == "served":
                self._serve(at, number, attempt)
            elif self._attempt[number] == attempt and not self._done[number]:
                self._give_up(at, number)
        return self.found

    def _later(self, at: float, what: str, number: int, attempt: int) -> None:
        heapq.heappush(self._events, (at, next(self._order), what, number, attempt))

    def _try(self, at: float, number: int) -> None:
        self._attempt[number] += 1
        attempt = int(self._attempt[number])
        if self._service.waits_s < float("inf"):
            self._later(at + self._service.waits_s, "late", number, attempt)
        if self._free:
            self._begin(at, number, attempt)
        elif len(self._waiting) < self._service.queue:
            self._waiting.append((number, attempt))
            self._lose()
        elif self._service.retries == 0:
            self._end(at, number, well=False)

    def _lose(self) -> None:
        """Lose the cache if the queue has become long: once, or for as long as it is."""
        if len(self._waiting) > self._service.loses_at and not self._lost:
            self._cached, self._lost = 0.0, self._service.refills

    def _begin(self, at: float, number: int, attempt: int) -> None:
        service = self._service
        self._free -= 1
        takes_s = service.takes_s * float(np.exp(self._random.normal(0, service.spread)))
        takes_s *= 1 + service.leak * self._served
        self._work_s[number] = takes_s
        if service.entries and self._random.random() > self._cached / service.entries:
            takes_s *= service.miss
            if service.refills or len(self._waiting) <= service.loses_at / 2:
                was, self._cached = self._cached, min(self._cached + 1, service.entries)
                if was < 0.9 * service.entries <= self._cached:
                    self.found.full.append(at)
        self._later(at + takes_s, "served", number, attempt)

    def _serve(self, at: float, number: int, attempt: int) -> None:
        self._served += 1
        self._free += 1
        if not self._done[number] and attempt == self._attempt[number]:
            self._end(at, number, well=True)
        if self._waiting:
            self._begin(at, *self._waiting.popleft())
        else:
            self._lost = False

    def _give_up(self, at: float, number: int) -> None:
        if self._attempt[number] <= self._service.retries:
            self._try(at, number)
        else:
            self._end(at, number, well=False)

    def _end(self, at: float, number: int, *, well: bool) -> None:
        self._done[number] = True
        self.found.ended[number], self.found.well[number] = at, well
        self.found.beyond_s[number] = at - self._due[number] - self._work_s[number]


@dataclass(frozen=True, kw_only=True)
class PlantedOverload:
    """An overload of a service: its plan, its arrivals and how they ended, and what is right."""

    kind: str
    plan: OverloadPlan
    service: Service
    due: Floats
    served: Served

    @property
    def back_s(self) -> float:
        """Seconds after the return until the queue and the cache were as before.

        The first arrival that waits no tenth of the usual time, once the cache is full for good.
        """
        usual_s = np.median((self.served.ended - self.due)[self.due < self.plan.begin_s])
        fine = self.served.well & (self.served.beyond_s <= usual_s / 10)
        from_s = max([self.plan.return_s, *self.served.full[-1:]])
        after = self.due[fine & (self.due >= from_s)]
        return float(after[0] if len(after) else np.inf) - self.plan.return_s

    @property
    def told(self) -> str:
        """The parameters."""
        plan, service = self.plan, self.service
        return (
            f"{self.kind}: {float(plan.times):.2f} times {float(plan.of_per_s):.1f}/s for"
            f" {float(plan.for_s):.1f} s, back to {float(plan.share):.2f}; {service}"
        )

    def statistics(self, pauses: tuple[tuple[float, float], ...] = ()) -> OverloadStatistics:
        """The statistics, as a coordinator makes them of blocks of a second.

        `pauses`: begin and end (s) of times in which the load generator did nothing: it starts
        late, and sees the ends of iterations late.
        """
        made = OverloadStatistics(self.plan)
        started = resumed(self.due, pauses)
        ended = resumed(started + (self.served.ended - self.due), pauses)
        beats = np.arange(0, float(ended.max()) + 1, BEAT_S)
        awake = resumed(beats, pauses)
        block, beat = ended.astype(int), awake.astype(int)
        for second in np.unique(block):
            here = np.flatnonzero(block == second)
            columns = rows_of(here, self.due, started, ended, self.served.well)
            made.add(columns)
            lags = ((awake - beats)[beat == second] * NS).astype(np.int64)
            made.add_lateness("w", columns, lags)
        return made


def rows_of(
    here: NDArray[np.int64],
    due: Floats,
    started: Floats,
    ended: Floats,
    well: NDArray[np.bool_],
) -> Columns:
    """Result rows of some iterations; times are seconds."""
    due_ns, started_ns, ended_ns = (
        (one[here] * NS).astype(np.int64) for one in (due, started, ended)
    )
    return Columns(
        iteration=here + 1,
        outcome=np.where(well[here], Outcome.OK, Outcome.FAILED).astype(np.uint8),
        due=due_ns,
        started=np.maximum(started_ns, due_ns),
        ended=np.maximum(ended_ns, due_ns + 1),
        idle=np.zeros(len(here), np.int64),
        failure=np.zeros(len(here), np.uint32),
    )


def resumed(instants: Floats, pauses: tuple[tuple[float, float], ...]) -> Floats:
    """Instants, each within a pause moved to the end of it."""
    found = instants
    for begin, end in pauses:
        found = np.where((found >= begin) & (found < end), end, found)
    return found


def planted(random: Random, kind: str) -> PlantedOverload:
    """An overload of a kind in `RIGHT`, by chance."""
    service = Service(
        servers=int(random.integers(1, 9)),
        takes_s=float(10 ** random.uniform(-1.7, -0.9)),
        spread=float(random.uniform(0.05, 0.4)),
    )
    # from 20 to 120 requests per second
    rate = float(random.uniform(20, 120))
    service = replace(service, takes_s=service.takes_s * service.capacity / rate)
    times, share = float(random.uniform(1.6, 3)), float(random.uniform(0.5, 0.75))
    for_s, before_s = float(random.uniform(6, 20)), float(random.uniform(15, 40))
    service, times, share = _with_parts(random, kind, service, (times, share, for_s))
    # a capacity as one would write it: a little less than it is
    capacity = service.capacity * float(random.uniform(0.93, 1))
    if kind == "large capacity":
        service = replace(service, servers=50 * service.servers)
    config = {
        "times": round(times, 3),
        "back_to": round(share, 3),
        "for": round(for_s, 2),
        "before": round(before_s, 2),
    }
    if kind in ("slow leak", "cache that refills"):
        # misses slow the drain down, and a leak takes its time
        drains_s = (times - 1) * for_s / (1 - share)
        watched_s = max(float(random.uniform(90, 240)), 4000 / (share * rate))
        config["watch"] = round(2 * drains_s + watched_s, 2)
    plan = OverloadPlan.of(config, round(capacity, 3))
    arrivals = {
        "arrivals": str(random.choice(["even", "poisson"])),
        "seed": int(random.integers(9**9)),
    }
    due = schedule(plan.curve, arrivals).due(0, None, plan.end_s)
    served = Simulation(service, due, random).play()
    return PlantedOverload(kind=kind, plan=plan, service=service, due=due, served=served)


def _with_parts(
    random: Random, kind: str, service: Service, load: tuple[float, float, float]
) -> tuple[Service, float, float]:
    """The service with the parts of a kind, and the multiple and the share that go with it."""
    times, share, for_s = load
    rate = service.capacity
    if kind == "bounded queue":
        service = replace(service, queue=int(rate * random.uniform(0.5, 2)) + 1)
    if kind == "clients that retry":
        waits_s = service.takes_s * 5 + float(random.uniform(0.5, 1.5))
        # twice what the gateway waits for: nothing that is served is still wanted
        service = replace(
            service,
            waits_s=waits_s,
            retries=int(random.integers(2, 5)),
            queue=int(rate * waits_s * random.uniform(2, 3)) + 2,
        )
        times = max(times, 1.3 + waits_s * 2 / for_s)
    if kind == "clients that retry little":
        share = float(random.uniform(0.3, 0.4))
        waits_s = service.takes_s * 5 + float(random.uniform(0.5, 1.5))
        service = replace(service, waits_s=waits_s, retries=1, queue=int(rate * waits_s * 2) + 2)
    if kind.startswith("cache"):
        service = replace(
            service,
            entries=int(rate * random.uniform(1, 3)),
            miss=float(random.uniform(3, 6)),
            loses_at=rate * 0.5,
            queue=int(rate * random.uniform(2, 4)),
            refills=kind == "cache that refills",
        )
        times = max(times, 1.3 + 1.5 / for_s)
    if kind == "slow leak":
        share = float(random.uniform(0.3, 0.45))
        lasts = rate * (share * 200 + times * for_s + 2 * share * (times - 1) * for_s / (1 - share))
        service = replace(
            service,
            servers=service.servers + 4,
            takes_s=service.takes_s * (service.servers + 4) / service.servers,
            leak=float(random.uniform(0.3, 0.7)) / lasts,
        )
    return service, times, share
