"""The random schedule of a round: hosts, loads and faults, a pure function of its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

#: How likely each kind of fault is, against the others; what they do stands in `chaos.faults`.
#: Kinds with 0 come in addition, from a random sequence of their own.
WEIGHTS = {
    "kill-process": 3.0,
    "kill-host": 2.0,
    "stop-process": 2.0,
    "stop-host": 2.0,
    "stop-supervisor": 0.5,
    "drain-host": 1.0,
    "kill-coordinator": 4.0,
    "stop-coordinator": 2.0,
    "interrupt": 0.0,
    "start-host": 0.0,
    "redis-restart": 2.0,
    "redis-cut-off": 1.5,
    "redis-rollback": 2.0,
    "redis-empty": 1.0,
    "redis-flush": 1.5,
    "redis-forget": 2.0,
    "redis-hang": 1.5,
    "redis-full": 1.0,
    "failover": 2.0,
    "cut-host": 2.0,
    "hang-host": 1.5,
    "cut-coordinator": 1.5,
    "delay": 1.0,
    "throttle": 0.5,
    "lose-replies": 1.0,
    "swallow": 1.0,
    "reorder": 1.0,
    "repeat": 1.0,
    "disk-full": 1.0,
    "clock-step": 1.0,
    "attack-replay": 2.0,
    "attack-swap": 1.0,
    "attack-close-streams": 1.0,
    "attack-types": 1.0,
    "attack-overwrite": 1.0,
    "attack-junk": 1.0,
    "attack-reorder": 1.0,
    "attack-delete": 1.0,
    "broker-memory": 0.0,
    "broker-disk": 0.0,
    "broker-hang": 0.0,
    "broker-restart": 0.0,
}
#: Faults of RabbitMQ, and how many rounds have it as their broker.
BROKER_FAULTS = tuple(kind for kind in WEIGHTS if kind.startswith("broker-"))
BROKER_SHARE = 0.4
#: In how many rounds hosts start while the runs are under way, whose workers then join.
STARTED_SHARE = 0.5

#: After these nothing may be missing: the run goes on and ends exact.
GENTLE = frozenset(
    kind
    for kind in WEIGHTS
    if kind.startswith(("redis-", "broker-"))
    or kind
    in (
        "failover",
        "cut-host",
        "hang-host",
        "cut-coordinator",
        "delay",
        "throttle",
        "lose-replies",
        "swallow",
        "reorder",
        "repeat",
        "clock-step",
        "drain-host",
        "start-host",
    )
)
#: Seconds of gentle faults in all, up to which nothing may be missing.
GENTLE_S = 9.0


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """A workload of a run."""

    #: Arrivals a second of an open load; 0 is a closed load.
    rate: float
    #: Virtual users of a closed load.
    users: int
    times: int
    answer_ms: int

    @property
    def runner(self) -> dict[str, dict[str, float]]:
        """As a task has it."""
        if self.rate:
            return {"rps": {"rps": self.rate, "times": self.times}}
        return {"constant": {"concurrency": self.users, "times": self.times}}

    def __str__(self) -> str:
        kind = f"open {self.rate:g}/s" if self.rate else f"closed {self.users} users"
        return f"{kind} {self.times}x{self.answer_ms}ms"


@dataclass(frozen=True, kw_only=True)
class RunShape:
    """A run: its workloads, one after another or at once."""

    loads: tuple[LoadPlan, ...]
    is_parallel: bool
    is_idempotent: bool
    #: Each workload has a context.
    has_context: bool
    #: Workers it takes; 0 is all.
    workers: int

    @property
    def times(self) -> int:
        """Iterations of all workloads."""
        return sum(load.times for load in self.loads)

    def __str__(self) -> str:
        loads = (" with " if self.is_parallel else " then ").join(map(str, self.loads))
        again = " idempotent" if self.is_idempotent else ""
        return f"{loads}{again}{' in a context' if self.has_context else ''}"


@dataclass(frozen=True, kw_only=True, order=True)
class Fault:
    """One fault; what `target`, `for_s` and `value` mean is up to its kind."""

    #: Seconds after the first request, or, where `is_early`, after the start of the first run.
    at_s: float
    kind: str
    #: Picks a host or a run, counted round.
    target: int
    for_s: float
    #: From 0 to 1.
    value: float
    is_early: bool

    def __str__(self) -> str:
        early = "start" if self.is_early else ""
        return f"{self.kind}@{early}{self.at_s:+.1f}s({self.for_s:.1f}s {self.value:.2f})"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """All that is decided of a round beforehand."""

    seed: int
    hosts: int
    runs: tuple[RunShape, ...]
    faults: tuple[Fault, ...]
    #: RabbitMQ is the broker, in place of Redis.
    has_rabbitmq: bool = False

    @property
    def is_gentle(self) -> bool:
        """Whether nothing may be missing in the end."""
        kinds = {fault.kind for fault in self.faults}
        left = self.hosts - sum(fault.kind == "drain-host" for fault in self.faults)
        # each workload of those at once has workers of its own, and so has each run
        needed = sum(len(run.loads) if run.is_parallel else 1 for run in self.runs)
        total_s = sum(fault.for_s for fault in self.faults)
        return kinds <= GENTLE and total_s <= GENTLE_S and left >= needed

    def __str__(self) -> str:
        runs = ", ".join(map(str, self.runs))
        broker = " with RabbitMQ" if self.has_rabbitmq else ""
        return f"{self.hosts} hosts{broker}; {runs}; {' '.join(map(str, self.faults))}"


def schedule_of(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = random.Random(seed)
    # what came later draws from here, so that the rest of a seed's schedule stays what it was
    more = random.Random(f"{seed} more")
    hosts = chance.randint(2, 4)
    runs = 2 if chance.random() < 0.2 else 1
    workers = hosts // runs if runs > 1 else 0
    shapes = tuple(_run(chance, more, workers, workers or hosts) for _ in range(runs))
    kinds = list(WEIGHTS)
    weights = list(WEIGHTS.values())
    chosen = chance.choices(kinds, weights, k=chance.randint(1, 4))
    faults = [_fault(chance, kind) for kind in chosen]
    if more.random() < 0.12:
        faults.append(_fault(more, "interrupt"))
    broker = random.Random(f"{seed} broker")
    has_rabbitmq = broker.random() < BROKER_SHARE
    if has_rabbitmq:
        chosen = broker.sample(BROKER_FAULTS, k=broker.randint(1, 2))
        faults += [_fault(broker, kind) for kind in chosen]
    later = random.Random(f"{seed} start-host")
    if later.random() < STARTED_SHARE:
        started = [_fault(later, "start-host") for _ in range(later.randint(1, 2))]
        faults += [replace(fault, for_s=0.0) for fault in started]
    return Schedule(
        seed=seed,
        hosts=hosts,
        runs=shapes,
        faults=tuple(sorted(faults)),
        has_rabbitmq=has_rabbitmq,
    )


def _run(chance: random.Random, more: random.Random, workers: int, processes: int) -> RunShape:
    """A run of `workers` (0 is all), which are at least `processes`."""
    loads = [_load(chance)]
    is_idempotent = chance.random() < 0.35
    if more.random() < 0.25:
        loads.append(_load(more))
    return RunShape(
        loads=tuple(loads),
        is_parallel=len(loads) > 1 and processes > 1 and more.random() < 0.5,
        is_idempotent=is_idempotent,
        has_context=more.random() < 0.25,
        workers=workers,
    )


def _load(chance: random.Random) -> LoadPlan:
    answer_ms = chance.choice((5, 20, 50, 200))
    seconds = chance.uniform(6.0, 10.0)
    is_open = chance.random() < 0.5
    users = 0 if is_open else chance.choice((2, 4, 8, 16))
    rate = chance.choice((20.0, 60.0, 120.0)) if is_open else 0.0
    # a closed user needs about 5 ms more than the answer takes
    times = round(seconds * (rate or min(300.0, users / (answer_ms / 1e3 + 0.005))))
    return LoadPlan(rate=rate, users=users, times=max(20, times), answer_ms=answer_ms)


def _fault(chance: random.Random, kind: str) -> Fault:
    is_early = chance.random() < 0.15
    return Fault(
        at_s=round(chance.uniform(0.0, 3.0 if is_early else 9.0), 2),
        kind=kind,
        target=chance.randrange(12),
        for_s=round(chance.choice((chance.uniform(0.2, 2.0), chance.uniform(2.0, 7.0))), 2),
        value=round(chance.random(), 3),
        is_early=is_early,
    )
