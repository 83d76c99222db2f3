"""A schedule: random loads and 10 s of random faults from a seed, then a calm until all is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from world.faults import FAULTS, Striker, calm
from world.fibers import S
from world.judges import Finding, judge
from world.world import World

#: When the faults begin and end, seconds.
FAULTS_FROM_S = 0.3
CALM_S = 10.0
#: Until when all runs have to be over, and how long workers may wait for a coordinator then.
OVER_S = 400.0
RELEASED_S = 90.0
#: How likely a fault is among those of a schedule.
CHOSEN = 0.35
#: Faults that put old messages back.
OLD = frozenset({"replay", "rollback", "restart", "redis-clock"})
#: How likely workers soon leave a run whose coordinator is not heard, and how soon, seconds.
HASTY = 0.3
HASTY_S = 4.0
#: How likely workers come one by one, and a run takes them; and that its users have a life then.
JOINED, LIVED = 0.3, 0.6
#: How likely a load has shares of zones, and its workers labels; and a second load, too.
ZONED, ZONED_TOO = 0.18, 0.5
#: Shares that it has: percents by zone. If they are less than 100 in all, others make the rest.
SHARES = (
    {"eu": 30.0, "us": 70.0},
    {"eu": 50.0, "us": 50.0},
    {"eu": 25.0},
    {"eu": 20.0, "us": 30.0},
    {"eu": 60.0, "us": 33.0, "asia": 7.0},
)
#: How likely there are also workers of a zone without a share, if all zones have one.
FOREIGN = 0.4
#: How likely a thread is put aside where it looks at the clock, in a schedule that does that.
ASIDE = 0.002


@dataclass(frozen=True, kw_only=True)
class Played:
    """How a schedule went."""

    seed: int
    findings: tuple[Finding, ...]
    kinds: tuple[str, ...]
    #: How often each fault struck.
    struck: Counter[str]
    virtual_s: float
    digest: str
    trace: tuple[str, ...]
    #: Starts of all runs, and final states of their numbers.
    starts: int
    states: Counter[str]


class Schedule:
    """The loads and faults of a seed."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Sequence[str] | None = None,
        but: Collection[str] = (),
        trace: bool = False,
    ) -> None:
        """`faults`: those that strike, in place of a random choice; `but` these of them."""
        self._seed = seed
        chance = self._chance = Random(f"schedule/{seed}")
        apart = chance.random() < 0.4
        drawn = tuple(name for name in FAULTS if self._is_drawn(name))
        if "restore-backup" in drawn:
            # a copy and old messages together are two histories: nobody could tell them apart
            drawn = tuple(name for name in drawn if name not in OLD)
        self.kinds = drawn if faults is None else tuple(faults)
        self.world = World(
            seed, trace=trace, broker_apart=apart, key_file="rotate-keys" in self.kinds
        )
        if Random(f"hasty/{seed}").random() < HASTY:
            self.world.coordinator_lost_s = HASTY_S
        self._but = frozenset(but)
        self._strikes = 0
        self.struck: Counter[str] = Counter()
        self._striker = Striker(self.world, chance)
        if chance.random() < 0.3:
            self.world.scheduler.preempt = ASIDE
        self._load()
        self._faults()

    def _is_drawn(self, name: str) -> bool:
        # each by itself: a new one shifts nothing of what a seed played before
        return Random(f"{name}/{self._seed}").random() < CHOSEN

    def _load(self) -> None:
        chance, world = self._chance, self.world
        workers = chance.randint(1, 3)
        hired = workers + chance.randint(0, 2)
        late = Random(f"join/{self._seed}")
        join = late.random() < JOINED
        workload = self._workload()
        zoned = Random(f"zones/{self._seed}")
        least = self._zone(zoned, workload) if zoned.random() < ZONED else 1
        workers, hired = max(workers, least), max(hired, least)
        if join:
            if late.random() < LIVED:
                workload["scenario"] = "lived"
            for _ in range(least, hired):
                world.scheduler.at(int(late.uniform(0.5, CALM_S) * S), world.hire)
            workers, hired = max(2, workers), least
        for _ in range(hired):
            world.hire()
        world.add(workers=workers, join=join, **workload)
        if chance.random() < 0.4:
            at_s, many, second = (
                chance.uniform(0.5, CALM_S - 1),
                chance.randint(1, 2),
                self._workload(),
            )
            if least > 1 and zoned.random() < ZONED_TOO:
                second["zones"], many = workload["zones"], max(many, least)
            world.add(at_s=at_s, workers=many, **second)

    def _zone(self, chance: Random, workload: dict[str, Any]) -> int:
        """Give a workload shares of zones, and workers labels; return how many zones there are."""
        shares = workload["zones"] = chance.choice(SHARES)
        is_whole = sum(shares.values()) == 100.0
        labels = [*shares, *(() if is_whole else ("",))]
        least = len(labels)
        # the first workers are one of each zone
        chance.shuffle(labels)
        labels += [f"{label}/other" if label else "" for label in labels]
        if is_whole and chance.random() < FOREIGN:
            labels.insert(chance.randint(least, len(labels)), "mars")
        self.world.labels = labels
        return least

    def _workload(self) -> dict[str, Any]:
        chance = self._chance
        times = chance.randint(40, 300)
        if chance.random() < 0.4:
            runner: dict[str, Any] = {"rps": {"times": times, "rps": chance.choice((10, 30, 60))}}
        else:
            runner = {"constant": {"times": times, "concurrency": chance.randint(2, 12)}}
        if chance.random() < 0.2:
            next(iter(runner.values()))["timeout"] = 0.5
        return {
            "runner": runner,
            "scenario": chance.choice(("work", "work", "awaited")),
            "idempotent": chance.random() < 0.25,
            "args": {"least_s": 0.02, "most_s": chance.choice((0.1, 0.4, 1.5))},
        }

    def _faults(self) -> None:
        chance, scheduler = self._chance, self.world.scheduler
        heat_s = chance.choice((1.0, 0.5, 0.2))
        at_s = FAULTS_FROM_S
        while at_s < CALM_S:
            scheduler.at(int(at_s * S), self._strike)
            at_s += chance.expovariate(1 / heat_s)
        scheduler.at(int(CALM_S * S), lambda: calm(self.world))

    def _strike(self) -> None:
        # of each its own: what one of them draws, or leaves out, shifts nothing of the others
        self._strikes += 1
        chance = self._striker.chance = Random(f"strike/{self.world.seed}/{self._strikes}")
        if self.kinds and any(run.is_coordinated for run in self.world.runs.values()):
            kind = chance.choice(self.kinds)
            if kind not in self._but and self._striker.strike(kind):
                self.struck[kind] += 1
        if chance.random() < 0.3:
            self._striker.remember(folders="restore-backup" in self.kinds)

    def play(self, over_s: float = OVER_S) -> Played:
        """Play it to its end; all runs have to be over by `over_s`."""
        with self.world as world:
            is_over = world.play(over_s)
            released = world.play_release(RELEASED_S)
            findings = judge(world, is_over=is_over, is_released=released)
            states: Counter[str] = Counter()
            for run in world.runs.values():
                states.update(run.accounting())
            return Played(
                seed=world.seed,
                findings=tuple(findings),
                kinds=self.kinds,
                struck=self.struck,
                virtual_s=world.scheduler.now / S,
                digest=world.digest,
                trace=tuple(world.trace or ()),
                starts=sum(len(run.known.starts) for run in world.runs.values()),
                states=states,
            )


def played(
    seed: int,
    *,
    faults: Sequence[str] | None = None,
    but: Collection[str] = (),
    trace: bool = False,
    over_s: float = OVER_S,
) -> Played:
    """Play the schedule of a seed."""
    return Schedule(seed, faults=faults, but=but, trace=trace).play(over_s)
