"""One random schedule: time, two runs, some workers, and everything that happens to them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection

from property.protocol_model.coordinator_model import CoordinatorModel, PlanModel
from property.protocol_model.faults import FAULTS, Faults
from property.protocol_model.judge import HARMLESS, Judge
from property.protocol_model.redis_model import RedisAway, RedisModel
from property.protocol_model.rules import COORDINATOR_LOST_S, DRIFT, RULES
from property.protocol_model.run_directory_model import RunDirectoryModel
from property.protocol_model.worker_model import WorkerModel

#: Faults happen for as long, in seconds; then runs have as long to end.
FAULTY_S = 15.0
CALM_S = 110.0
#: Then sleepers wake while an attacker goes on; then workers have to become free.
AFTER_S = 5.0
FREE_S = COORDINATOR_LOST_S + 4.0


class World:
    """A schedule by its seed. The same seed, rules and faults make the same schedule."""

    def __init__(
        self, seed: int, *, without: Collection[str] = (), faults: Collection[str] | None = None
    ) -> None:
        self.chance = random.Random(seed)
        self.rules = frozenset(RULES) - frozenset(without)
        self.now = 0.0
        self._ids = 0
        self.redis, self.judge = RedisModel(self.chance), Judge()
        if faults is None:
            faults = [kind for kind in FAULTS if self.chance.random() < 0.4]
        self.faults = Faults(self, frozenset(faults))
        self._heat = self.chance.choice((0.004, 0.01, 0.03))
        self.workers: list[WorkerModel] = []
        #: Names of all workers that ever were.
        self.incarnations: list[str] = []
        for _ in range(self.chance.randint(2, 4)):
            self.hire()
        self.plans = self.judge.plans = {run: self._plan(run) for run in "AB"}
        self.coordinators: dict[str, CoordinatorModel] = {}
        self._start_at = {"A": 0.0, "B": self.chance.uniform(1, 14)}
        #: Coordinators that live on beside one that has resumed their run.
        self._forked: list[CoordinatorModel] = []

    def drift(self) -> float:
        """How fast a clock runs."""
        return 1 + self.chance.uniform(-DRIFT, DRIFT)

    def nonce(self) -> int:
        """A number that nobody has had."""
        self._ids += 1
        return self._ids

    def hire(self) -> None:
        """Start a worker."""
        name = f"w{len(self.workers)}"
        self.incarnations.append(name)
        self.workers.append(WorkerModel(self, name))

    def resume_in(self, run: str, wait: float) -> None:
        """Have somebody resume a run."""
        self._start_at[run] = self.now + wait

    def fork(self, coordinator: CoordinatorModel) -> None:
        """Have somebody resume a copy of a run that is still coordinated."""
        run = coordinator.plan.run
        if not self._forked:
            self._forked.append(coordinator)
            disk = coordinator.disk.copy()
            self.coordinators[run] = CoordinatorModel(self, coordinator.plan, disk)

    def play(self) -> Counter[str]:
        """Play the schedule to its end; what was broken, by kind."""
        while self.now < FAULTY_S:
            self._tick()
            if self.chance.random() < self._heat:
                self.faults.strike()
        sleepers = self._calm_down()
        end = self.now + CALM_S
        while self.now < end and not self._over():
            self._tick()
        if not self._over():
            self.judge.broken["hang"] += 1
        for worker in self.workers:
            worker.wake()
        self._aftermath()
        exact = self.faults.kinds <= HARMLESS and not sleepers
        for coordinator in self.coordinators.values():
            self.judge.hear(coordinator, exact=exact)
        return self.judge.broken

    def _plan(self, run: str) -> PlanModel:
        chance = self.chance
        return PlanModel(
            run=run,
            digest=ord(run),
            size=chance.randint(6, 24),
            workers=chance.randint(1, 3),
            open_load=chance.random() < 0.4,
            idempotent=chance.random() < 0.25,
            interrupted_at=chance.choice((1e9, 1e9, chance.uniform(1, 20))),
        )

    def _calm_down(self) -> bool:
        """End the faults; whether workers sleep on until the runs are over."""
        self.redis.calm()
        for coordinator in self.coordinators.values():
            coordinator.paused = False
        for worker in self.workers:
            if worker.paused and self.chance.random() < 0.5:
                worker.wake()
        if not any(worker.alive and not worker.paused for worker in self.workers):
            self.hire()
        return any(worker.paused for worker in self.workers)

    def _over(self) -> bool:
        runs = self.coordinators
        return len(runs) == len(self.plans) and all(one.done for one in runs.values())

    def _aftermath(self) -> None:
        end = self.now + AFTER_S
        while self.now < end:
            if "replay" in self.faults.kinds and self.chance.random() < 0.2:
                self.faults.replay()
            self._tick()
        end = self.now + FREE_S
        while self.now < end and self._held():
            self._tick()
        if self._held() and self._over():
            self.judge.broken["not released"] += 1

    def _held(self) -> bool:
        return any(worker.held for worker in self.workers)

    def _tick(self) -> None:
        self.now += self.chance.expovariate(120)
        self.redis.pass_time(self.now)
        self._start_coordinators()
        processes: list[WorkerModel | CoordinatorModel] = [
            *self.workers,
            *self.coordinators.values(),
            *self._forked,
        ]
        process = self.chance.choice(processes)
        if process.paused:
            return
        try:
            if process.alive or (isinstance(process, WorkerModel) and process.supervised):
                process.step()
        except RedisAway:
            return

    def _start_coordinators(self) -> None:
        """Start the runs when it is their time, and again some time after a coordinator ended."""
        for run, plan in self.plans.items():
            present = self.coordinators.get(run)
            if present is not None and (present.alive or present.done):
                continue
            at = self._start_at.setdefault(run, self.now + 0.5)
            if self.now < at:
                continue
            del self._start_at[run]
            disk = present.disk if present is not None else RunDirectoryModel()
            self.coordinators[run] = CoordinatorModel(self, plan, disk)


def broken(
    seed: int, *, without: Collection[str] = (), faults: Collection[str] | None = None
) -> Counter[str]:
    """What a schedule has broken, by kind; empty where every promise was kept."""
    return World(seed, without=without, faults=faults).play()
